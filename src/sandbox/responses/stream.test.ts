import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { errorOf, until } from '../testing.ts'
import { answerOf, deltasOf, type Event, eventsOf, openResponses, readEvents } from './testing.ts'

const { sandbox, say, bill, clearBill } = openResponses()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const stream = { stream: true }
const thinking = { ...stream, model: 'gpt-5', reasoning: { effort: 'low', summary: 'auto' }, store: false }
const typesOf = (events: readonly Event[]): string[] =>
  events.map(({ type }) => type.replace(/^response\./, '')).filter((type, at, all) => type !== all[at - 1])
const tool = {
  type: 'function',
  name: 'get_weather',
  strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

const message = [
  'output_item.added',
  'content_part.added',
  'output_text.delta',
  'output_text.done',
  'content_part.done',
  'output_item.done',
]
const summary = [
  'output_item.added',
  'reasoning_summary_part.added',
  'reasoning_summary_text.delta',
  'reasoning_summary_text.done',
  'reasoning_summary_part.done',
  'output_item.done',
]
const call = (kind: string): string[] => ['output_item.added', `${kind}.delta`, `${kind}.done`, 'output_item.done']

describe('a stream', () => {
  test.each([
    ['text', 'Go on', stream, message],
    ['reasoning', 'Go on', thinking, [...summary, ...message]],
    [
      'reasoning without a summary',
      'Go on',
      { ...stream, model: 'gpt-5' },
      ['output_item.added', 'output_item.done', ...message],
    ],
    ['a function call', 'weather', { ...stream, tools: [tool] }, call('function_call_arguments')],
    [
      'a custom tool call',
      'patch',
      { ...stream, tools: [{ type: 'custom', name: 'patch' }] },
      call('custom_tool_call_input'),
    ],
    ['a refusal', 'sandbox:refusal', stream, message.map((type) => type.replace('output_text', 'refusal'))],
    [
      'a web search',
      'Search',
      { ...stream, tools: [{ type: 'web_search' }] },
      [
        'output_item.added',
        'web_search_call.in_progress',
        'web_search_call.searching',
        'web_search_call.completed',
        'output_item.done',
        ...message.toSpliced(3, 0, 'output_text.annotation.added'),
      ],
    ],
    [
      'a tool search',
      'search',
      { ...stream, tools: [{ type: 'tool_search', execution: 'client' }] },
      ['output_item.added', 'output_item.done'],
    ],
  ])('a stream of %s sends every step and ends with the plain answer', async (_, text, more, steps) => {
    const response = await say(text, more, { ref: 'streamed' })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const events = await eventsOf(response)
    expect(typesOf(events)).toEqual(['created', 'in_progress', ...steps, 'completed'])
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_event, index) => index))
    expect(events[0]?.response).toMatchObject({ status: 'in_progress', output: [], usage: null })
    const plain = await answerOf(say(text, { ...more, stream: false }, { ref: 'plain' }))
    const clock = { created_at: expect.any(Number), completed_at: expect.any(Number) }
    expect(events.at(-1)?.response).toEqual({ ...plain, ...clock })
    expect(events.filter(({ type }) => type.endsWith('output_item.done')).map(({ item }) => item)).toEqual(plain.output)
    const [streamed, once] = await bill()
    expect([streamed?.units, streamed?.cost]).toEqual([once?.units, once?.cost])
  })

  test('the deltas add up to the final summary and arguments', async () => {
    const events = await eventsOf(say('weather', { ...thinking, tools: [tool] }))
    const { output = [] } = events.at(-1)?.response ?? {}
    expect(deltasOf(events, 'response.reasoning_summary_text.delta')).toBe(output[0]?.summary[0]?.text ?? '')
    expect(deltasOf(events, 'response.function_call_arguments.delta')).toBe(output[1]?.arguments ?? '')
    expect(events.find(({ type }) => type.endsWith('arguments.done'))?.arguments).toBe(output[1]?.arguments ?? '')
  })

  test('encrypted reasoning is accepted back from the completed item only', async () => {
    const asked = { ...thinking, include: ['reasoning.encrypted_content'] }
    const events = await eventsOf(say('Go on', asked))
    const [early, late] = events.filter(({ item }) => item?.type === 'reasoning').map(({ item }) => item)
    const back = (item: unknown) =>
      say([{ role: 'user', content: 'x' }, item, { role: 'assistant', content: 'y' }, { role: 'user', content: 'z' }], {
        ...asked,
        stream: false,
      })
    expect((await errorOf(back(early))).code).toBe('invalid_encrypted_content')
    expect((await back(late)).status).toBe(200)
  })

  test('the deltas are padded unless obfuscation is switched off', async () => {
    const padded = await eventsOf(say('Go on', stream))
    for (const event of padded) expect(event.obfuscation !== undefined).toBe(event.type.endsWith('.delta'))
    const bare = await eventsOf(say('Go on', { ...stream, stream_options: { include_obfuscation: false } }))
    expect(bare.some((event) => event.obfuscation !== undefined)).toBe(false)
  })

  test('a stream that reaches its cap ends as incomplete', async () => {
    const events = await eventsOf(say('Go on sandbox:tokens=50', { ...stream, max_output_tokens: 16 }))
    expect(events.at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: { incomplete_details: { reason: 'max_output_tokens' }, usage: { output_tokens: 16 } },
    })
  })

  test('nousage omits the usage, crlf changes the line ends, drip keeps the stream complete', async () => {
    expect((await eventsOf(say('sandbox:nousage', stream))).at(-1)?.response.usage).toBeNull()
    const text = await (await say('sandbox:crlf', stream)).text()
    expect(text).toStartWith(': ping\r\nevent:response.created\r\ndata:{')
    expect((await eventsOf(say('sandbox:drip=7', stream))).at(-1)?.type).toBe('response.completed')
  })
})

describe('a stream that fails', () => {
  test('midstream-error ends with an error event, finish=failed with response.failed', async () => {
    const broken = await eventsOf(say('Go on sandbox:midstream-error', stream))
    expect<object | undefined>(broken.at(-1)).toEqual({
      type: 'error',
      sequence_number: broken.length - 1,
      code: 'server_error',
      message: expect.any(String),
      param: null,
    })
    const failed = await eventsOf(say('Go on sandbox:finish=failed', stream))
    expect(failed.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'server_error' }, usage: null },
    })
    // Three words of each were sent and are charged.
    expect((await bill()).map(({ units }) => units['output'])).toEqual([3, 3])
  })

  test('cut breaks the connection, eof ends early and malformed sends invalid JSON', async () => {
    const cut = await say('Go on sandbox:cut=2', stream)
    expect(
      await cut.text().then(
        () => 'whole',
        () => 'broken',
      ),
    ).toBe('broken')
    const short = await eventsOf(say('Go on sandbox:eof=2', stream))
    expect(short.filter(({ type }) => type.endsWith('.delta'))).toHaveLength(2)
    const odd = await (await say('Go on sandbox:malformed', stream)).text()
    expect(() => readEvents(odd)).toThrow()
    expect((await bill()).slice(0, 2).map(({ units }) => units['output'])).toEqual([2, 2])
  })

  test('a stream that ends before its web search is not billed for the search', async () => {
    const body = { ...thinking, tools: [{ type: 'web_search' }] }
    await (await say('Search sandbox:eof=1', body)).text()
    const [line] = await bill()
    expect(line?.units).toEqual({ input: expect.any(Number), cachedInput: 0, output: 1, reasoning: 1 })
  })

  test('a stream that the client aborts is billed with status 499, for its prompt and what was sent', async () => {
    const hangUp = new AbortController()
    const response = await say('sandbox:endless', stream, { signal: hangUp.signal })
    let words = 0
    for await (const bytes of response.body ?? []) {
      words += Buffer.from(bytes).toString().split('.delta"').length - 1
      if (words > 2) break
    }
    hangUp.abort()
    const line = await until(async () => (await bill())[0])
    expect(line.status).toBe(499)
    expect(line.units['input']).toBeGreaterThan(0)
    expect(line.units['output']).toBeGreaterThanOrEqual(words)
  })

  test.each([
    ['fail=rate_limit_exceeded', 429, 'rate_limit_exceeded'],
    ['status=503', 503, 'server_is_overloaded'],
    ['leak', 401, 'invalid_api_key'],
  ])('the steering word %s refuses the request without cost', async (word, status, code) => {
    expect(await errorOf(say(`sandbox:${word}`, stream))).toMatchObject({ status, code })
    expect((await bill()).map((line) => [line.status, line.cost])).toEqual([[status, '0']])
  })

  test('charge-then-fail bills the request and answers with a 500', async () => {
    expect((await say('sandbox:charge-then-fail=500', stream)).status).toBe(500)
    expect((await bill()).map((line) => [line.status, line.cost === '0'])).toEqual([[500, false]])
  })
})
