import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { AssistantBlock, Finish, Reply, ReplyEvent } from '../../capabilities/conversation.ts'
import { textIn } from '../loose.ts'
import { shortName } from '../short-name.ts'
import { responsesChat } from './chat.ts'
import { unseal } from './sealed.ts'
import { askOf, name } from './testing.ts'

type Written = { type: string; sequence_number: number; [field: string]: unknown }
type Response = { status: string; output: JsonObject[]; [field: string]: unknown }

const usage = { input: 10, cachedInput: 4, output: 7, reasoning: 2 }
const sealing = { include: ['reasoning.encrypted_content'] }
const showing = { reasoning: { summary: 'auto' } }
const choice = 0

function parse(bytes: Uint8Array | undefined): Written[] {
  const events = Buffer.from(bytes ?? [])
    .toString()
    .replaceAll(/^:.*\n/gm, '') // comments
    .split('\n\n')
    .filter((event) => event !== '')
  return events.map((event) => {
    const [, named, data = ''] = /^event: ([\w.]+)\ndata: (.*)$/.exec(event) ?? []
    const json = JSON.parse(data) as Written
    expect(json.type).toBe(named ?? '')
    return json
  })
}

function stream(events: readonly ReplyEvent[], body: JsonObject = {}) {
  const writer = responsesChat.openWriter(askOf({ stream: true, ...body }), name)
  const written = events.flatMap((event) => parse(writer.write([event])))
  const all = [...written, ...parse(writer.closing(usage))]
  expect(all.map(({ sequence_number: number }) => number)).toEqual(all.map((_, index) => index))
  const { response } = all.at(-1) as unknown as { response: Response }
  return { events: all, types: all.map(({ type }) => type.replace(/^response\./, '')), response }
}

function whole(
  blocks: readonly AssistantBlock[],
  body: JsonObject = {},
  more: Partial<Reply> & { finish?: Finish } = {},
) {
  const { finish = 'stop', ...rest } = more
  const reply: Reply = { choices: [{ blocks, finish }], usage, ...rest }
  return JSON.parse(Buffer.from(responsesChat.writeAnswer(askOf(body), reply, name)).toString()) as Response
}

const say = (text: string): ReplyEvent => ({ kind: 'text-delta', choice, text })
const think = (text: string): ReplyEvent => ({ kind: 'thinking-delta', choice, text })
const start = (call: number, more = {}): ReplyEvent => ({
  kind: 'tool-call-start',
  choice,
  call,
  id: `call_${call}`,
  name: `f${call}`,
  ...more,
})
const grow = (call: number, text: string): ReplyEvent => ({ kind: 'tool-call-delta', choice, call, text })
const finish = (reason: Finish): ReplyEvent => ({ kind: 'choice-finish', choice, finish: reason })

const call = (called: string, argumentsText: string): AssistantBlock => ({
  kind: 'tool-call',
  id: 'c',
  name: called,
  argumentsText,
})
const cited = (text: string, ...urls: string[]): AssistantBlock => ({
  kind: 'text',
  text,
  citations: urls.map((url) => ({ url })),
})

describe('a response', () => {
  test('a response repeats the fields of the request that had an effect', () => {
    const tool = { type: 'function', name: 'f' }
    const search = { type: 'web_search', external_web_access: false }
    const response = whole([{ kind: 'text', text: 'Hello' }], {
      instructions: 'Be brief.',
      tools: [tool, search],
      temperature: 0.5,
      store: true,
      truncation: 'auto',
      metadata: { a: 'b' },
    })
    expect(response).toMatchObject({
      id: 'resp_0123',
      object: 'response',
      created_at: 1_700_000_000,
      completed_at: 1_700_000_002,
      status: 'completed',
      error: null,
      incomplete_details: null,
      instructions: 'Be brief.',
      model: 'm',
      tools: [{ ...tool, parameters: null, strict: null }],
      tool_choice: 'auto',
      parallel_tool_calls: true,
      temperature: 0.5,
      top_p: 1,
      text: { format: { type: 'text' }, verbosity: 'medium' },
      reasoning: { effort: null, summary: null },
      metadata: { a: 'b' },
      store: false,
      truncation: 'disabled',
      previous_response_id: null,
      service_tier: 'default',
      usage: {
        input_tokens: 14,
        input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 21,
      },
    })
    expect(response.output).toEqual([
      {
        type: 'message',
        id: 'msg_012300',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hello', annotations: [], logprobs: [] }],
      },
    ])
  })

  test.each([
    ['stop', 'completed', null],
    ['stop-sequence', 'completed', null],
    ['tool-calls', 'completed', null],
    ['pause', 'completed', null],
    ['length', 'incomplete', 'max_output_tokens'],
    ['refusal', 'incomplete', 'content_filter'],
  ] as const)('a response that finished with %s has the status %s', (reason, status, why) => {
    const said = whole([{ kind: 'text', text: 'Hm' }], {}, { finish: reason })
    const streamed = stream([say('Hm'), finish(reason)])
    for (const response of [said, streamed.response]) {
      expect(response).toMatchObject({ status, incomplete_details: why === null ? null : { reason: why } })
      expect(response.output[0]).toMatchObject({ status })
      expect(response['completed_at']).toBe(status === 'completed' ? 1_700_000_002 : null)
    }
    expect(streamed.types.at(-1)).toBe(status)
  })

  test('a response without usage gets an estimate above zero', () => {
    const counted = whole([{ kind: 'text', text: 'Hello to you' }], {}, { usage: undefined })['usage'] as JsonObject
    expect(counted['input_tokens']).toBeGreaterThan(0)
    expect(counted['output_tokens']).toBeGreaterThan(0)
  })
})

describe('a stream', () => {
  test('a stream opens and closes each part that it shows, and ends once', () => {
    const events: ReplyEvent[] = [
      { kind: 'reply-start' },
      say('Hel'),
      say('lo'),
      { kind: 'refusal-delta', choice, text: 'No' },
    ]
    expect(stream([...events, finish('stop'), { kind: 'reply-end' }]).types).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'content_part.added',
      'refusal.delta',
      'refusal.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ])
  })

  test('interleaved calls are told apart by their output_index', () => {
    const events = [
      start(0),
      start(1),
      grow(0, '{"a"'),
      grow(1, '{}'),
      grow(0, ':1}'),
      say('So.'),
      finish('tool-calls'),
    ]
    const { response, types, events: written } = stream(events)
    expect(response.output.map(({ type, arguments: text }) => [type, text])).toEqual([
      ['function_call', '{"a":1}'],
      ['function_call', '{}'],
      ['message', undefined],
    ])
    expect(types.filter((type) => type.startsWith('output_item'))).toHaveLength(6)
    const places = written.filter(({ type }) => type.endsWith('arguments.delta')).map((event) => event['output_index'])
    expect(places).toEqual([0, 1, 0])
    // A complete item is ended before the next one begins.
    expect(types.indexOf('output_item.done')).toBeLessThan(types.indexOf('output_text.delta'))
  })

  test('a call without arguments is written with an empty object, and the event that has them whole names it', () => {
    const { response, events } = stream([start(0), finish('tool-calls')])
    expect(response.output[0]).toMatchObject({ arguments: '{}', status: 'completed', call_id: 'call_0', name: 'f0' })
    expect(events.slice(3, 5)).toMatchObject([{ delta: '{}' }, { name: 'f0', arguments: '{}' }])
  })

  test.each(['{"a":', ''])('a call that was cut off after %p is marked incomplete', (text) => {
    const streamed = stream([start(0), start(1), grow(1, text), finish('length')])
    const said = whole([call('f0', '{}'), call('f1', text)], {}, { finish: 'length' })
    for (const { output } of [streamed.response, said]) {
      expect(output[0]).toMatchObject({ arguments: '{}', status: 'completed' })
      expect(output[1]).toMatchObject({ arguments: text, status: 'incomplete' })
    }
    expect(streamed.events.findLast(({ arguments: said }) => said !== undefined)).toMatchObject({ arguments: text })
  })

  test('heartbeats, hosted searches and hidden reasoning are written as comments without an empty line of their own', () => {
    const writer = responsesChat.openWriter(askOf({ stream: true }), name)
    expect(writer.write([{ kind: 'heartbeat' }])).toBeUndefined()
    writer.write([{ kind: 'reply-start' }])
    for (const kind of ['heartbeat', 'hosted-tool-run'] as const) {
      const sign = writer.write([{ kind, searches: 1, foundBytes: 0 }])
      expect(Buffer.from(sign ?? []).toString()).toBe(': waiting\n')
    }
    const hidden = Array.from({ length: 200 }, () => Buffer.from(writer.write([think('hm')]) ?? []).toString())
    expect(hidden.filter((text) => text.startsWith(':')).length).toBeGreaterThan(2)
  })

  test('a stream that fails ends with response.failed under the next sequence number', () => {
    const writer = responsesChat.openWriter(askOf({ stream: true }), name)
    const before = parse(writer.write([{ kind: 'reply-start' }, say('Hel')]))
    const error = new GatewayError('upstream-failed', 'It broke.', { param: 'messages[0]' })
    const [last, ...more] = parse(writer.failing?.(error))
    expect(more).toEqual([])
    expect(last).toMatchObject({
      type: 'response.failed',
      sequence_number: before.length,
      response: { status: 'failed', error: { code: 'server_error', message: 'It broke.' }, usage: null },
      error: { message: 'It broke.', type: 'upstream_error', param: 'input', code: 'upstream_failed' },
    })
    expect((last as unknown as { response: Response }).response.output[0]).toMatchObject({ status: 'incomplete' })
  })

  test('a second choice is dropped', () => {
    const { response } = stream([say('One'), { kind: 'text-delta', choice: 1, text: 'Two' }, finish('stop')])
    expect(JSON.stringify(response.output)).not.toContain('Two')
  })
})

describe('reasoning', () => {
  const blocks: AssistantBlock[] = [
    { kind: 'thinking', text: 'Hm', signature: 's' },
    { kind: 'thinking-redacted', data: 'd' },
    { kind: 'text', text: 'So.' },
  ]
  const events: ReplyEvent[] = [
    think('H'),
    think('m'),
    { kind: 'thinking-sign', choice, text: 'Hm', signature: 's' },
    { kind: 'thinking-redact', choice, data: 'd' },
    say('So.'),
    finish('stop'),
  ]
  const both = (body: JsonObject) => [whole(blocks, body), stream(events, body).response].map(({ output }) => output)

  test('reasoning items are empty unless the client asked for their content', () => {
    for (const output of both({})) {
      expect(output.map(({ type }) => type)).toEqual(['reasoning', 'reasoning', 'message'])
      for (const item of output.slice(0, 2)) {
        expect(item).toEqual({ type: 'reasoning', id: expect.any(String) as string, summary: [] })
      }
    }
  })

  test('reasoning is summarised and sealed as the client asked', () => {
    const summary = [{ type: 'summary_text', text: 'Hm' }]
    for (const output of both(showing)) expect(output[0]).toEqual({ type: 'reasoning', id: 'rs_012300', summary })
    for (const output of both({ ...sealing, ...showing })) {
      expect(output.map(({ type }) => type)).toEqual(['reasoning', 'reasoning', 'message'])
      expect(output[0]).toMatchObject({ summary })
      const seals = output.slice(0, 2).map(({ encrypted_content: content }) => unseal(textIn(content)))
      expect(seals).toEqual([
        { kind: 'thought', text: 'Hm', signature: 's' },
        { kind: 'redacted', data: 'd' },
      ])
    }
    expect(stream(events, showing).types.filter((type) => type.startsWith('reasoning'))).toEqual([
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
    ])
  })

  test('the signature of a Google call is sealed before the call, or else written on it', () => {
    const signed: AssistantBlock = { kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}', signature: 'google:g' }
    const [carrier, call] = whole([signed], sealing).output
    expect(unseal(textIn(carrier?.['encrypted_content']))).toEqual({ kind: 'call', signature: 'google:g' })
    expect(call).toMatchObject({ type: 'function_call', call_id: 'c' })
    expect(whole([signed]).output).toMatchObject([
      { type: 'function_call', extra_content: { google: { thought_signature: 'g' } } },
    ])
  })
})

describe('tools', () => {
  const plain = { type: 'custom', name: 'patch' }
  const search = { type: 'tool_search', execution: 'client' }
  const inside = { type: 'namespace', name: 'n', description: '', tools: [{ type: 'function', name: 'f' }] }
  const body = { tools: [plain, inside, search] }

  test('calls are written with the names and types of the client’s own tools', () => {
    expect(whole([call('patch', '{"input":"a\\nb"}')], body).output).toEqual([
      { type: 'custom_tool_call', id: 'ctc_012300', call_id: 'c', status: 'completed', name: 'patch', input: 'a\nb' },
    ])
    expect(whole([call('patch', 'no object')], body).output[0]).toMatchObject({ input: 'no object' })
    expect(whole([call('n__f', '{}')], body).output[0]).toMatchObject({ name: 'f', namespace: 'n' })
    const long = { ...inside, name: 'n'.repeat(64) }
    const [called] = whole([call(shortName(`${long.name}__f`), '{}')], { tools: [long] }).output
    expect(called).toMatchObject({ name: 'f', namespace: long.name })
    expect(whole([call('tool_search', '{"query":"q"}')], body).output).toEqual([
      {
        type: 'tool_search_call',
        id: 'tsc_012300',
        call_id: 'c',
        status: 'completed',
        execution: 'client',
        arguments: { query: 'q' },
      },
    ])
    expect(whole([call('unheard', '{}')], body).output[0]).toMatchObject({ type: 'function_call', name: 'unheard' })
  })

  test.each([
    ['', ''],
    ['{"inp', ''],
    ['{"input": "', ''],
    ['{"input": "a\\nb', 'a\nb'],
    ['{"input":"a\\', 'a'],
    ['{"input":"a\\\\', 'a\\'],
    ['{"input":"a\\u00e', 'a'],
    ['{"input":"a"', 'a'],
    ['no obj', 'no obj'],
  ])('a plain-text tool call that was cut off after %p keeps the input so far', (text, input) => {
    const { output } = whole([call('patch', text)], body, { finish: 'length' })
    expect(output[0]).toMatchObject({ input, status: 'incomplete' })
  })

  test('the input of a plain-text tool is streamed once it is complete', () => {
    const { types, response } = stream(
      [start(0, { name: 'patch' }), grow(0, '{"inp'), grow(0, 'ut":"ab"}'), finish('tool-calls')],
      body,
    )
    expect(types.slice(2, -1)).toEqual([
      'output_item.added',
      'custom_tool_call_input.delta',
      'custom_tool_call_input.done',
      'output_item.done',
    ])
    expect(response.output[0]).toMatchObject({ input: 'ab' })
  })
})

test('citations cover the text since the previous cited text', () => {
  const citation = (url: string): ReplyEvent => ({ kind: 'citation-add', choice, citation: { url } })
  const said = whole([cited('One. ', 'https://a.example/', 'https://b.example/'), cited('Two.', 'https://c.example/')])
  const told = stream([
    say('One. '),
    citation('https://a.example/'),
    citation('https://b.example/'),
    say('Two.'),
    citation('https://c.example/'),
    { kind: 'citation-add', choice, citation: { title: 'a document' } },
    finish('stop'),
  ])
  expect(told.response.output).toEqual(said.output)
  const [message] = said.output as unknown as { content: { annotations: JsonObject[] }[] }[]
  expect(message?.content[0]?.annotations.map((one) => [one['url'], one['start_index'], one['end_index']])).toEqual([
    ['https://a.example/', 0, 5],
    ['https://b.example/', 0, 5],
    ['https://c.example/', 5, 9],
  ])
})

test('an image is written as an image_generation_call', () => {
  const media = { kind: 'bytes', mediaType: 'image/png', base64: 'AAAA' } as const
  const item = {
    type: 'image_generation_call',
    id: 'ig_012300',
    status: 'completed',
    output_format: 'png',
    result: 'AAAA',
  }
  expect(whole([{ kind: 'image', media }]).output).toEqual([item])
  expect(stream([{ kind: 'image-add', choice, media }, finish('stop')]).response.output).toEqual([item])
})
