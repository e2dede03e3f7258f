import { describe, expect, test } from 'bun:test'
import { wholeOf } from '../../base/spliced.ts'
import { dataOf } from '../../base/sse.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { passStream } from './chat-stream.ts'
import { plainAsk } from './testing.ts'

const ask = { ...plainAsk, model: 'ours' }

/** What a client would get of these events, and the facts at the end. */
function follow(events: readonly string[], changed: Partial<ChatAsk> = {}) {
  const stream = passStream({ ...ask, ...changed })
  const given = events.map((event) => Buffer.from(event))
  const forwarded = given.flatMap((event) => stream.takeUsual?.(event) ?? stream.take(event) ?? [])
  const text = forwarded.map((bytes) => Buffer.from(wholeOf(bytes)).toString())
  return { text, facts: stream.facts, closing: Buffer.from(stream.closing()).toString() }
}

const event = (json: unknown) => `data: ${JSON.stringify(json)}\n\n`
const chunk = (delta: unknown, finish: string | null = null, more = {}) =>
  event({ id: 'c', model: 'ours', choices: [{ index: 0, delta, finish_reason: finish }], ...more })
const opening = chunk({ role: 'assistant', content: '' })
const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
const usageOnly = event({ id: 'c', model: 'ours', choices: [], usage })
const done = 'data: [DONE]\n\n'
const dated = (text: string) => text.replace('"ours"', '"ours-2026-01-01"')

describe('events that are forwarded', () => {
  test('a nested error member is forwarded and is not a failure', () => {
    const told = chunk({ content: 'Hi' }, null, { metadata: { error: { code: 1 } } })
    const { text, facts } = follow([told])
    expect([text, facts.failure]).toEqual([[told], undefined])
  })

  test('every event before the usage and [DONE] is forwarded byte for byte', () => {
    const events = [': ping\n\n', opening, chunk({ content: 'Hi' }), chunk({}, 'stop')]
    const { text, facts, closing } = follow([...events, usageOnly, done])
    expect(text).toEqual(events)
    expect(closing).toBe(done)
    expect(facts).toMatchObject({ finished: true, ended: true, failure: undefined })
    expect(facts.usage).toMatchObject({ input: 5, output: 2 })
  })

  test('empty ids and names and repeated types are removed from the parts of a call', () => {
    const part = (more: object) => chunk({ tool_calls: [{ index: 0, ...more }] })
    const head = part({ id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } })
    const words = '{"id":"","name":"","type":"function","say":"ä"}'
    const parts = [
      part({ id: '', type: 'function', function: { name: '', arguments: words } }),
      part({ type: 'function', function: { arguments: words, name: '' }, id: '' }),
      part({ id: '', function: { arguments: words } }).replace('"id":"",', '"id": "", '),
      part({ function: { name: '', arguments: words }, id: '', type: 'function' }),
      chunk({ tool_calls: [{ id: '', type: 'custom', custom: { name: '', input: words }, index: 0 }] }),
    ]
    const { text, facts } = follow([head, ...parts, chunk({ content: '"tool_calls":[{"id":""}]' })])
    expect(text.map((each) => JSON.parse(each.slice(6)).choices[0].delta)).toEqual([
      { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: words } }] },
      { tool_calls: [{ index: 0, function: { arguments: words } }] },
      { tool_calls: [{ index: 0, function: { arguments: words } }] },
      { tool_calls: [{ index: 0, function: { arguments: words } }] },
      { tool_calls: [{ index: 0, custom: { input: words } }] },
      { content: '"tool_calls":[{"id":""}]' },
    ])
    expect(text[0]).toBe(head)
    expect(facts.outputEvents).toBe(7)
  })

  test('empty ids and names are also removed beside usage and in multi-line events', () => {
    const part = { tool_calls: [{ id: '', index: 0, function: { name: '', arguments: 'x' } }] }
    const counted = chunk(part, null, { usage })
    const lines = JSON.stringify(JSON.parse(chunk(part).slice(6)), null, 1).split('\n')
    const inLines = `${lines.map((line) => `data: ${line}\n`).join('')}\n`
    for (const usageShown of [false, true]) {
      const shown = follow([counted, inLines], { usageShown }).text.map((each) => JSON.parse(dataOf(Buffer.from(each))))
      for (const { choices } of shown) {
        expect(choices[0].delta.tool_calls).toEqual([{ index: 0, function: { arguments: 'x' } }])
      }
    }
  })

  test('parts without id and name, and empty lists of calls, are forwarded unchanged', () => {
    const events = [
      chunk({ tool_calls: [{ index: 0, function: { arguments: 'x' } }] }),
      chunk({ content: 'Hi', tool_calls: [] }),
      chunk({ content: 'Hi', tool_calls: null }),
    ].map((each) => Buffer.from(each))
    const stream = passStream(ask)
    for (const each of events) expect(stream.take(each)).toBe(each)
  })

  test('usage that the client asked for is sent at the very end', () => {
    const { text, closing } = follow([opening, chunk({ content: 'Hi' }), usageOnly, done], { usageShown: true })
    expect(text).toHaveLength(2)
    expect(closing).toBe(usageOnly + done)
  })

  test('usage in the last chunk is removed unless the client asked for it', () => {
    const inline = chunk({}, 'stop', { usage })
    const hidden = follow([opening, chunk({ content: 'Hi' }), inline, done])
    expect(JSON.parse(hidden.text.at(-1)?.slice(6) ?? '')).toEqual({
      id: 'c',
      model: 'ours',
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    })
    expect(hidden.facts.usage).toMatchObject({ output: 2 })
    expect(hidden.facts.finished).toBe(true)
    expect(follow([inline, done], { usageShown: true }).text).toEqual([inline])
  })

  test('a last usage that counts nothing does not replace the one before it', () => {
    const empty = event({ id: 'c', model: 'ours', choices: [], usage: {} })
    const { facts, closing } = follow([opening, chunk({ content: 'Hi' }), usageOnly, empty, done], { usageShown: true })
    expect(facts.usage).toMatchObject({ input: 5, output: 2 })
    expect(closing).toBe(usageOnly + done)
  })

  test('a last usage of zeros neither replaces the one before it nor reaches the client', () => {
    const zeros = event({ id: 'c', model: 'ours', choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } })
    const { facts, closing } = follow([opening, chunk({ content: 'Hi' }, 'stop', { usage }), zeros, done], {
      usageShown: true,
    })
    expect(facts.usage).toMatchObject({ input: 5, output: 2 })
    expect(closing).toBe(done)
    expect(follow([opening, chunk({ content: 'Hi' }), zeros, done]).facts.usage).toMatchObject({ input: 0, output: 0 })
  })

  test('the usage inside the only choice counts where the event has none of its own', () => {
    const inside = event({ id: 'c', model: 'ours', choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage }] })
    const { facts, text } = follow([opening, chunk({ content: 'Hi' }), inside, done])
    expect(facts.usage).toMatchObject({ input: 5, output: 2 })
    expect(text.at(-1)).toBe(inside)
    // Each of several choices counts only itself.
    expect(follow([opening, inside, done], { choices: 2 }).facts.usage).toBeUndefined()
  })

  test('the last of several running usages counts, and none is forwarded unasked', () => {
    const running = (count: number) => chunk({ content: 'x' }, null, { usage: { ...usage, completion_tokens: count } })
    const { facts, text } = follow([running(1), running(2), running(3), chunk({}, 'stop'), done])
    expect(facts.usage).toMatchObject({ output: 3 })
    expect(text.join('')).not.toContain('usage')
  })

  test('our model id replaces a dated one, also in the usage event', () => {
    const { text, closing } = follow([dated(opening), dated(chunk({ content: 'Hi' })), dated(usageOnly), done], {
      usageShown: true,
    })
    expect(text).toEqual([opening, chunk({ content: 'Hi' })])
    expect(closing).toBe(usageOnly + done)
  })

  test('a malformed event in mid-stream is forwarded unchanged', () => {
    const broken = 'data: {"id":"c","choices":[{"delta":{"content":"unfini\n\n'
    expect(follow([opening, broken, chunk({}, 'stop'), done]).text).toContain(broken)
  })

  test('text that looks like an end or an error is text', () => {
    const tricky = chunk({ content: 'data: [DONE] "error":{} "usage":{} "finish_reason":"stop"' })
    const short = 'data: {"choices":[],"x":"[DONE]"}\n\n'
    const { text, facts } = follow([tricky, short])
    expect(text).toEqual([tricky, short])
    expect(facts).toMatchObject({ ended: false, finished: false, usage: undefined, failure: undefined })
  })

  test('null usage and error members are ignored', () => {
    const quiet = chunk({ content: 'x' }, null, { usage: null, error: null })
    expect(follow([quiet])).toMatchObject({ text: [quiet], facts: { usage: undefined, failure: undefined } })
  })
})

const finish = (index: number) => event({ choices: [{ index, delta: {}, finish_reason: 'stop' }] })

/** The keep-alive after these events. */
function alive(events: readonly string[], changed: Partial<ChatAsk> = {}): string {
  const stream = passStream({ ...ask, ...changed })
  for (const each of events) stream.take(Buffer.from(each))
  return Buffer.from(stream.keepAlive?.() ?? []).toString()
}

const calling = (part: object) => ({ tool_calls: [{ index: 1, ...part }] })
const silent = (index: number, delta: unknown = {}) => ({ index, delta, logprobs: null, finish_reason: null })

describe('a keep-alive', () => {
  const head = { id: 'c', object: 'chat.completion.chunk', created: 5, model: 'ours' }
  const begun = dated(event({ ...head, choices: [] }))

  test('is an event of its own, a chunk like the others with an empty delta', () => {
    expect(alive([begun])).toBe(event({ ...head, choices: [silent(0)] }))
    expect(alive([begun], { usageShown: true })).toBe(event({ ...head, choices: [silent(0)], usage: null }))
  })

  // OpenAI's client for Go takes what the last chunk was a part of for finished as soon as a chunk has nothing of it.
  test.each([
    ['a text', { role: 'assistant', content: '' }, { content: '' }],
    ['a refusal', { refusal: 'No' }, { refusal: '' }],
    ['a call', calling({ id: 'c', function: { arguments: '{"a' } }), calling({ function: { arguments: '' } })],
    ['a plain-text call', calling({ custom: { name: 'f', input: 'a' } }), calling({ custom: { input: '' } })],
    ['reasoning', { content: null, reasoning_content: 'Hm' }, {}],
  ])('goes on with %s, and adds nothing to it', (_what, delta, nothing) => {
    const told = event({ ...head, choices: [{ index: 1, delta, finish_reason: null }] })
    // Azure's first chunk has neither an id nor a date.
    const filters = event({ ...head, id: '', created: 0, choices: [] })
    expect(alive([filters, told], { choices: 2 })).toBe(event({ ...head, choices: [silent(1, nothing)] }))
  })

  test('is a comment as long as there are only comments of the vendor', () => {
    expect(alive([': ping\n\n'])).toBe(': keep-alive\n\n')
  })

  test('belongs to a choice without a finish, and there is none after the last finish', () => {
    const ended = (index: number) => event({ ...head, choices: [{ index, delta: {}, finish_reason: 'stop' }] })
    expect(alive([begun, ended(0)], { choices: 2 })).toBe(event({ ...head, choices: [silent(1)] }))
    expect(alive([begun, ended(0), ended(1)], { choices: 2 })).toBe('')
    const calls = [0, 1].map((index) => silent(index, calling({ id: 'c', function: { arguments: '{"a' } })))
    const others = event({ ...head, choices: [calls[0], silent(2, { content: 'b' }), calls[1]] })
    const going = event({ ...head, choices: [silent(1, calling({ function: { arguments: '' } }))] })
    expect(alive([others, ended(0)], { choices: 4 })).toBe(going)
  })
})

describe('the end of a stream', () => {
  test.each([
    ['data: [DONE]\n\n'],
    ['data:[DONE]\n\n'],
    ['data: [DONE]\r\n\r\n'],
    ['data:  [DONE] \n\n'],
    ['event: x\ndata: [DONE]\n\n'],
    [`${': keep-alive\n'.repeat(9)}data: [DONE]\n\n`],
  ])('%j ends the stream', (end) => {
    expect(follow([chunk({ content: 'x' }), end]).facts.ended).toBe(true)
  })

  test('the stream is finished once every choice is', () => {
    expect(follow([finish(0)], { choices: 2 }).facts.finished).toBe(false)
    expect(follow([finish(0), finish(1)], { choices: 2 }).facts.finished).toBe(true)
  })

  test('an error event is a failure and is not forwarded', () => {
    const { text, facts } = follow([chunk({ content: 'x' }), event({ error: { message: 'on fire' } })])
    expect(text).toHaveLength(1)
    expect(facts.failure).toMatchObject({ kind: 'upstream-failed', message: 'on fire' })
  })

  const finishing = { choices: [{ index: 0, delta: {}, finish_reason: 'error' }] }

  test.each([
    ['a message alone', event({ error: 'on fire' })],
    ['beside a choice that finished with an error', event({ ...finishing, error: { message: 'on fire' } })],
    [
      'in the choice itself',
      event({ choices: finishing.choices.map((one) => ({ ...one, error: { message: 'on fire' } })) }),
    ],
    ['named by the event', 'event: error\ndata: {"message":"on fire"}\n\n'],
    ['named by the event, with an error object', 'id: 7\nevent:error\ndata: {"error":{"message":"on fire"}}\n\n'],
    ['the event itself, as hosts of vLLM send it', event({ object: 'error', message: 'on fire', code: 40_303 })],
    ['named by the event, without JSON', 'event: error\r\ndata: on fire\r\n\r\n'],
  ])('an error in another form is a failure and is not forwarded: %s', (_how, told) => {
    const { text, facts } = follow([chunk({ content: 'x' }), told])
    expect(text).toHaveLength(1)
    expect(facts.failure).toMatchObject({ kind: 'upstream-failed', message: 'on fire' })
    expect(facts).toMatchObject({ finished: false, outputEvents: 1 })
  })

  test('a refusal by a number, as MiniMax sends it, is a failure with that number inside, and is not forwarded', () => {
    const refusal = { choices: null, base_resp: { status_code: 1026, status_msg: 'so it is' } }
    const { text, facts } = follow([opening, event(refusal)])
    expect(text).toEqual([opening])
    expect(facts.failure?.details.inside).toEqual({ status: 200, body: JSON.stringify(refusal) })
    const made = chunk({}, 'stop', { base_resp: { status_code: 0, status_msg: '' } })
    expect(follow([made])).toMatchObject({ text: [made], facts: { failure: undefined, finished: true } })
  })

  test('an event with another name and an empty error member are not failures', () => {
    const events = ['event: errors\ndata: {"a":1}\n\n', chunk({ content: 'x' }, null, { error: '' })]
    expect(follow(events)).toMatchObject({ text: events, facts: { failure: undefined } })
  })

  test.each(['data: {"choices":[],"usage":{"prompt_tok\n\n', 'data: {"error":{"mess\n\n'])(
    'a malformed usage or error event is a failure: %j',
    (broken) => {
      const { text, facts } = follow([chunk({ content: 'x' }), broken])
      expect(text).toHaveLength(1)
      expect(facts.failure).toMatchObject({ kind: 'upstream-failed' })
      expect(facts.usage).toBeUndefined()
    },
  )
})

const counted = (...events: readonly string[]) => follow(events).facts.outputEvents

const twenty = (delta: unknown) => Array.from({ length: 20 }, () => chunk(delta))

const likely = (token: string) => ({ token, logprob: -0.5, bytes: [...Buffer.from(token)] })

describe('the measure of delivered output', () => {
  test('deltas with only the role are not counted as output', () => {
    expect(counted(opening)).toBe(0)
    expect(counted(opening, chunk({ role: 'assistant', content: null }))).toBe(0)
    expect(counted(': ping\n\n', opening)).toBe(0)
  })

  test.each([
    ['text', { content: 'x' }],
    ['text and the role', { role: 'assistant', content: 'x' }],
    ['reasoning', { content: null, reasoning_content: 'hm' }],
    ['reasoning and the role', { role: 'assistant', content: null, reasoning_content: 'hm' }],
    ['reasoning under its other name', { role: 'assistant', content: '', reasoning: 'hm' }],
    ['a tool call', { role: 'assistant', content: null, tool_calls: [{ index: 0, function: { name: 'f' } }] }],
    ['a refusal', { role: 'assistant', content: '', refusal: 'No.' }],
  ])('a chunk with %s is one output event', (_name, delta) => {
    expect(counted(chunk(delta))).toBe(1)
  })

  test('images that a relay sends beside an empty text are counted', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
    const pictured = chunk({ role: 'assistant', content: '', images: [image, image] })
    const { text, facts } = follow([opening, pictured, chunk({ content: 'So.' })])
    expect(text[1]).toBe(pictured)
    expect(facts).toMatchObject({ images: 2, outputEvents: 2 })
  })

  test('outputBytes leaves out the frame of the event', () => {
    const { facts } = follow([opening, chunk({ content: 'x'.repeat(400) })])
    expect(facts.outputBytes).toBeWithin(350, 450)
  })

  test('outputBytes leaves out the vendor’s obfuscation padding', () => {
    const padded = ['x', 'abcdefgh', 'abc', 'abcdefghijklmno'].map((obfuscation, at) =>
      chunk({ content: `w${at}` }, null, { obfuscation }),
    )
    const { facts } = follow([chunk({ role: 'assistant', content: '' }, null, { obfuscation: 'abcdefg' }), ...padded])
    expect(facts).toMatchObject({ outputEvents: 4, outputBytes: 0 })
  })

  test('outputBytes leaves out logprobs', () => {
    const said = (token: string) => {
      const logprobs = { content: [{ ...likely(token), top_logprobs: ['ä', 'b', 'c'].map(likely) }], refusal: null }
      return event({ choices: [{ index: 0, delta: { content: token }, logprobs, finish_reason: null }] })
    }
    const begun = event({ choices: [{ index: 0, delta: { role: 'assistant' }, logprobs: null, finish_reason: null }] })
    const { facts } = follow([begun, said('one'), said('two'), said('six')])
    expect(facts).toMatchObject({ outputEvents: 3, outputBytes: 0 })
    expect(follow([begun, said('x'.repeat(400))]).facts.outputBytes).toBe(396)
  })

  test('an event with only usage is not counted as output', () => {
    expect(counted(opening, usageOnly)).toBe(0)
  })

  test.each([
    ['an empty object', 'data: {}\n\n'],
    ['a ping', 'event: ping\ndata: {"type":"ping"}\n\n'],
    ['no choices', event({ id: 'c', choices: [] })],
    ['choices that are null', event({ id: 'c', choices: null })],
    ['an empty delta', event({ choices: [{ index: 0, delta: {} }] })],
  ])('an event with %s is not counted, whether before, among or after the text', (_name, silent) => {
    for (const at of [0, 1, 10, 21]) {
      const { facts, text } = follow([opening, ...twenty({ content: 'word' })].toSpliced(at, 0, silent))
      expect([facts.outputEvents, facts.outputBytes, text.length]).toEqual([20, 0, 22])
    }
  })

  test.each([
    ['text', { content: 'word' }],
    ['the arguments of a call', { tool_calls: [{ index: 0, function: { arguments: 'word' } }] }],
    ['the input of a custom tool', { tool_calls: [{ index: 0, custom: { input: 'word' } }] }],
    ['reasoning', { content: null, reasoning_content: 'word' }],
    ['reasoning under its other name', { content: '', reasoning: 'word' }],
    ['a refusal', { refusal: 'word' }],
    ['reasoning in a list (Mistral)', { content: [{ type: 'thinking', thinking: [{ text: 'word' }] }] }],
  ])('outputBytes measures %s without the event around it', (_name, delta) => {
    const { facts } = follow([opening, chunk({ content: 'Hi' }), ...twenty(delta)])
    // The two bytes of the shortest event are counted as one token in every event.
    expect([facts.outputEvents, facts.outputBytes]).toEqual([21, 20 * 2])
  })

  test('two calls in one event are measured by the arguments of both', () => {
    const calls = ['{"a":1}', '{}'].map((text, index) => ({ index, function: { name: 'f', arguments: text } }))
    const { facts } = follow([opening, chunk({ tool_calls: calls })])
    expect([facts.outputEvents, facts.outputBytes]).toEqual([1, String.raw`{\"a\":1}{}`.length - 4])
  })
})

describe('a finish_reason', () => {
  test('an event with text and a finish_reason counts as output and finishes the stream', () => {
    const { facts } = follow([opening, chunk({ content: 'Hello there' }, 'stop')])
    expect(facts).toMatchObject({ finished: true, outputEvents: 1 })
  })

  test('an empty finish_reason does not finish the stream', () => {
    const { facts } = follow([chunk({ role: 'assistant', content: '' }, ''), chunk({ content: 'Hi' }, '')])
    expect(facts).toMatchObject({ finished: false, outputEvents: 1 })
  })

  test('one event can finish two choices', () => {
    const both = [0, 1].map((index) => ({ index, delta: {}, finish_reason: 'stop' }))
    const { facts } = follow([opening, event({ id: 'c', model: 'ours', choices: both })], { choices: 2 })
    expect(facts.finished).toBe(true)
  })
})
