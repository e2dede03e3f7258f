import { expect, test } from 'bun:test'
import { errorOf } from '../../test/support/thrown.ts'
import type { JsonObject } from '../base/json.ts'
import { askOf as chatAskOf } from './openai/testing.ts'
import { askOf as responsesAskOf } from './responses/testing.ts'

const asChat = (body: JsonObject) => chatAskOf({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...body })
const codeOf = (ask: () => unknown) => errorOf(ask).details.code
const paramOf = (ask: () => unknown) => errorOf(ask).details.param
const at = (list: string, field: string) => `${list}[0].${field}[0].prompt_cache_breakpoint.ttl`

/** A message with one part, after which the vendor is to keep its cache for so long. */
const keeping = (type: string, ttl: string | null) => {
  const part = { type, text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit', ttl } }
  return [{ role: 'user', content: [part] }]
}

test('a cache that costs more to write because it is kept for longer is refused', () => {
  const options = { prompt_cache_options: { ttl: '12h' } }
  expect(paramOf(() => asChat(options))).toBe('prompt_cache_options.ttl')
  expect(paramOf(() => responsesAskOf(options))).toBe('prompt_cache_options.ttl')
  expect(paramOf(() => asChat({ messages: keeping('text', '12h') }))).toBe(at('messages', 'content'))
  expect(paramOf(() => responsesAskOf({ input: keeping('input_text', '12h') }))).toBe(at('input', 'content'))
  const [{ content: output } = { content: [] }] = keeping('input_text', '12h')
  const found = { type: 'function_call_output', call_id: 'c', output }
  expect(paramOf(() => responsesAskOf({ input: [found] }))).toBe(at('input', 'output'))
})

test.each([{ Prompt_Cache_Options: { ttl: '12h' } }, { prompt_cache_options: { TTL: '12h' } }])(
  'nor is it sold in another spelling, which some servers take: %j',
  (options) => {
    for (const ask of [asChat, responsesAskOf]) expect(codeOf(() => ask(options))).toBe('unknown_parameter')
  },
)

test.each([{ Prompt_Cache_Breakpoint: { ttl: '12h' } }, { prompt_cache_breakpoint: { TTL: '12h' } }])(
  'nor in another spelling in a part: %j',
  (hint) => {
    const inPart = (type: string) => [{ role: 'user', content: [{ type, text: 'Hi', ...hint }] }]
    expect(codeOf(() => asChat({ messages: inPart('text') }))).toBe('unknown_parameter')
    expect(codeOf(() => responsesAskOf({ input: inPart('input_text') }))).toBe('unknown_parameter')
  },
)

test.each(['5m', '30m', null])('a cache with a lifetime that has a price is not refused: %s', (ttl) => {
  expect(asChat({ messages: keeping('text', ttl), prompt_cache_options: { ttl } }).model).toBe('m')
  expect(responsesAskOf({ input: keeping('input_text', ttl), prompt_cache_options: { ttl } }).model).toBe('m')
})
