import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import { markOpenai } from '../../capabilities/conversation.ts'
import { textIn } from '../loose.ts'
import { isNative, passAsk } from './pass-ask.ts'
import { passAnswer } from './pass-answer.ts'
import { passStream } from './pass-stream.ts'
import { seal } from './sealed.ts'
import { askOf, target, thinker } from './testing.ts'

const passed = (body: JsonObject) => JSON.parse(passAsk(askOf(body, thinker), target)) as JsonObject
const inputOf = (...input: JsonObject[]) => passed({ input })['input']
const optionsOf = (body: JsonObject) => passed({ stream: true, ...body })['stream_options']

const choice = (allowed: Json) => ({ type: 'allowed_tools', mode: 'auto', tools: allowed })

describe('a request that is passed through', () => {
  test('the client’s fields are kept, with store off and labels namespaced', () => {
    const body = {
      input: 'Hi',
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      new_field: { a: [1] },
      prompt_cache_key: 'k',
      safety_identifier: 'x'.repeat(100),
    }
    expect(passed({ ...body, store: true })).toEqual({
      ...body,
      model: 'theirs',
      store: false,
      prompt_cache_key: 'mine/k',
      safety_identifier: `mine/${'x'.repeat(59)}`,
    })
  })

  test('a stream is not padded unless the client wants that', () => {
    expect(optionsOf({})).toEqual({ include_obfuscation: false })
    expect(optionsOf({ stream_options: { include_obfuscation: true } })).toEqual({ include_obfuscation: true })
  })

  test('sampling and logprobs are not sent to a reasoning model', () => {
    const include = ['message.output_text.logprobs', 'reasoning.encrypted_content']
    const body = passed({ temperature: 1, top_p: 0.5, top_logprobs: 2, include })
    expect(body).toEqual({ model: 'theirs', input: 'Hi', include: ['reasoning.encrypted_content'], store: false })
  })

  test('comparison_response_id is removed from the cache options', () => {
    const options = { mode: 'implicit', ttl: '30m' }
    const compared = { comparison_response_id: 'resp_of_somebody' }
    expect(passed({ prompt_cache_options: { ...options, ...compared } })['prompt_cache_options']).toEqual(options)
    expect(passed({ prompt_cache_options: compared })).not.toHaveProperty('prompt_cache_options')
    expect(passed({ prompt_cache_options: null })).toHaveProperty('prompt_cache_options', null)
  })

  test('items are sent back without their ids', () => {
    const said = {
      type: 'message',
      role: 'assistant',
      phase: 'commentary',
      content: [{ type: 'output_text', text: 'Hi' }],
    }
    expect(inputOf({ ...said, id: 'msg_1' })).toEqual([said])
  })

  test('fields that the official client parsed are removed from items', () => {
    const parts = { content: [{ type: 'output_text', text: '{}' }] }
    const said = { type: 'message', role: 'assistant' }
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
    const parsed = { content: [{ type: 'output_text', text: '{}', parsed: {} }] }
    expect(inputOf({ ...said, ...parsed }, { ...call, parsed_arguments: {} })).toEqual([{ ...said, ...parts }, call])
  })

  test('calls are sent back without foreign signatures, and overlong call ids are replaced', () => {
    const call_id = 'x'.repeat(70)
    const call = { type: 'function_call', call_id, name: 'f', arguments: '{}' }
    const extra = { google: { thought_signature: 'sig' } }
    const [made, answered] = inputOf(
      { ...call, id: 'fc_1', extra_content: extra },
      { type: 'function_call_output', call_id, output: 'x' },
    ) as JsonObject[]
    expect(textIn(made?.['call_id'])).toMatch(/^call_[0-9a-f]{32}$/)
    expect(made).toEqual({ ...call, call_id: made?.['call_id'] ?? '' })
    expect(answered?.['call_id']).toEqual(made?.['call_id'] ?? '')
  })

  test.each([
    ['as the vendor encrypted it', 'gAAA', 'gAAA'],
    [
      'as the vendor encrypted it, even if we sealed it',
      seal({ kind: 'thought', text: '', signature: markOpenai('gAAA') }),
      'gAAA',
    ],
    ['only if no other vendor signed it', seal({ kind: 'thought', text: '', signature: 'Eq' }), undefined],
    ['only if it is not the signature of a call', seal({ kind: 'call', signature: 'google:x' }), undefined],
    ['only if it has encrypted content', null, undefined],
  ])('a reasoning item is sent back %s', (_how, given, encrypted) => {
    const thought = { type: 'reasoning', summary: [] }
    const expected = encrypted === undefined ? [] : [{ ...thought, encrypted_content: encrypted }]
    expect(inputOf({ ...thought, id: 'rs_1', encrypted_content: given })).toEqual(expected)
  })

  test('searches are capped, and a search without external access is not offered', () => {
    const inside = { type: 'web_search', external_web_access: false }
    const f = { type: 'function', name: 'f', parameters: {} }
    expect(passed({ tools: [inside, f] })['tools']).toEqual([f])
    const searching = passed({ tools: [{ type: 'web_search' }, inside] })
    expect(searching).toMatchObject({ tools: [{ type: 'web_search' }], max_tool_calls: 5 })
  })

  test.each([
    ['among others', [{ type: 'web_search' }, { type: 'function', name: 'f' }], [{ type: 'function', name: 'f' }]],
    ['alone', [{ type: 'web_search' }], undefined],
  ])('allowed_tools loses a search without external access that it names %s', (_how, named, kept) => {
    const inside = { type: 'web_search', external_web_access: false }
    const tools = [inside, { type: 'function', name: 'f', parameters: {} }]
    const { tool_choice: told } = passed({ tools, tool_choice: choice(named) })
    expect(told).toEqual(kept === undefined ? 'none' : choice(kept))
    const offered = passed({ tools: [{ type: 'web_search' }, ...tools], tool_choice: choice(named) })
    expect(offered['tool_choice']).toEqual(choice(named))
  })

  test.each(['additional_tools', 'tool_search_output'])(
    'a search without external access is removed from %s items',
    (type) => {
      const f = { type: 'function', name: 'f', parameters: {} }
      const brought = { type, call_id: 'c', tools: [f] }
      const inside = { type: 'web_search', external_web_access: false }
      expect(inputOf({ ...brought, tools: [inside, f] })).toEqual([brought])
    },
  )
})

const agentMessage = (words: string) => ({
  type: 'agent_message',
  author: '/root',
  recipient: '/root/worker',
  content: [
    { type: 'input_text', text: 'Payload:' },
    { type: 'encrypted_content', encrypted_content: words },
  ],
})

describe('the choice between pass-through and translation', () => {
  const tool = { type: 'function', name: 'f' }
  const hello = { role: 'user', content: 'Hi' }
  test.each([
    { tools: [{ type: 'namespace', name: 'n', tools: [tool] }] },
    { tools: [{ type: 'tool_search', execution: 'client' }] },
    { input: [hello, { type: 'additional_tools', tools: [tool] }] },
    { input: [agentMessage(`gAAAA${'x'.repeat(80)}==`)] },
    { input: [{ type: 'function_call', call_id: 'c', name: 'f', namespace: 'n', arguments: '{}' }] },
  ])('tool search and namespaces pass through only to models that know them: %j', (body) => {
    expect(isNative(askOf(body, thinker), false)).toBe(false)
    expect(isNative(askOf(body, thinker), true)).toBe(true)
  })

  test('a message between agents that another vendor’s model wrote is translated', () => {
    expect(isNative(askOf({ input: [agentMessage('List the files.')] }, thinker), true)).toBe(false)
  })

  test('a request with an image_generation_call is always translated', () => {
    const input = [hello, { type: 'image_generation_call', result: 'AAAA' }]
    expect(isNative(askOf({ input }, thinker), true)).toBe(false)
  })

  test('a request with custom tools and their calls is passed through', () => {
    const custom = { type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'lark', definition: 'x' } }
    const input = [hello, { type: 'custom_tool_call', call_id: 'c', name: 'patch', input: 'x' }]
    expect(isNative(askOf({ tools: [tool, custom], input }, thinker), false)).toBe(true)
  })
})

const theirs = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  error: null,
  model: 'theirs-2026',
  prompt_cache_key: 'mine/k',
  safety_identifier: null,
  output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hello there' }] }],
  usage: { input_tokens: 9, output_tokens: 3 },
}
const ours = { ...theirs, model: 'm', prompt_cache_key: 'k' }

test('a whole answer repeats the client’s own model and cache key', () => {
  const ask = askOf({ prompt_cache_key: 'k' }, thinker)
  const answer = passAnswer(ask, Buffer.from(JSON.stringify(theirs)))
  expect(JSON.parse(Buffer.from(answer.body).toString())).toEqual(ours)
  expect(answer.usage).toMatchObject({ input: 9, output: 3 })
  expect(answer.estimateOutput()).toBeGreaterThan(1)
})

const event = (type: string, more: object = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
const created = event('response.created', { sequence_number: 0, response: { ...theirs, status: 'in_progress' } })
const delta = event('response.output_text.delta', { sequence_number: 1, delta: '"type":"error"' })
const completed = event('response.completed', { sequence_number: 2, response: theirs })

const padded = (words: string, obfuscation: string) =>
  event('response.output_text.delta', { delta: words, obfuscation })

function follow(...events: string[]) {
  const stream = passStream(askOf({ stream: true, prompt_cache_key: 'k' }, thinker))
  const shown = events
    .flatMap((one) => stream.take(Buffer.from(one)) ?? [])
    .map((bytes) => Buffer.from(bytes).toString())
  return { stream, shown, facts: stream.facts }
}

describe('a stream', () => {
  test('events are forwarded with the client’s model and cache key, and the last is held back', () => {
    const { stream, shown, facts } = follow(': hi\n\n', created, delta, completed)
    expect(shown).toEqual([': hi\n\n', expect.any(String), delta])
    expect(JSON.parse(dataOf(Buffer.from(shown[1] ?? '')))).toMatchObject({
      response: { model: 'm', prompt_cache_key: 'k' },
    })
    const end = JSON.parse(dataOf(stream.closing())) as JsonObject
    expect(end).toEqual({ type: 'response.completed', sequence_number: 2, response: ours })
    expect(facts).toMatchObject({ finished: true, ended: true, failure: undefined, outputEvents: 1 })
    expect(facts.usage).toMatchObject({ input: 9, output: 3 })
  })

  test('obfuscation padding does not add to outputBytes', () => {
    const plain = follow(created, padded('H', ''), padded('Hello', ''))
    const { facts } = follow(created, padded('H', 'xyz'), padded('Hello', 'x'.repeat(60)))
    expect(plain.facts.outputBytes).toBe('ello'.length)
    expect(facts.outputBytes).toBe(plain.facts.outputBytes)
  })

  test.each(['reasoning_summary_text', 'function_call_arguments', 'refusal'])(
    'outputBytes measures the delta of an event alone: %s',
    (kind) => {
      const twenty = Array.from({ length: 20 }, () => event(`response.${kind}.delta`, { item_id: 'i', delta: 'word' }))
      expect(follow(created, padded('Hi', ''), ...twenty).facts).toMatchObject({
        outputEvents: 21,
        outputBytes: 20 * 2,
      })
    },
  )

  test('searches are counted even if the stream does not end', () => {
    const search = { type: 'web_search_call', action: { type: 'search' } }
    const { facts } = follow(created, event('response.output_item.done', { item: search }), delta)
    expect(facts).toMatchObject({ ended: false, hosted: { searches: 1 } })
  })

  test.each([
    event('response.failed', { response: { status: 'failed', error: { message: 'Broken.' } } }),
    event('error', { code: 'server_error', message: 'Broken.' }),
    event('error', { error: { message: 'Broken.' } }),
    'data: {"type":"response.completed","resp\n\n',
  ])('an event that fails the stream is a failure and is not forwarded: %j', (broken) => {
    const { shown, facts } = follow(created, delta, broken)
    expect(shown).toHaveLength(2)
    expect(facts).toMatchObject({ ended: false, failure: { kind: 'upstream-failed' } })
  })

  test('a failed stream ends with response.failed under the next sequence number', () => {
    const { stream } = follow(created, delta, event('error', { sequence_number: 2, message: 'Broken.' }))
    const failing = stream.failing?.(new GatewayError('upstream-failed', 'Broken.')) ?? new Uint8Array()
    expect(JSON.parse(dataOf(failing))).toMatchObject({
      type: 'response.failed',
      sequence_number: 2,
      response: { id: 'resp_1', model: 'm', status: 'failed', error: { code: 'server_error', message: 'Broken.' } },
      error: { message: 'Broken.' },
    })
  })
})
