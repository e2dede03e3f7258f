import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { countText } from '../estimate.ts'
import { estimateInput } from './estimate.ts'
import { askOf } from './testing.ts'

const estimate = (native: JsonObject, inputTokensMax = 1_000_000) => estimateInput({ ...askOf(native), inputTokensMax })

const words = 'a few words of which somebody has to say how many tokens they are'
const tokens = countText(words)
const image = { type: 'image', source: { type: 'base64', data: words } }
const said = (...content: JsonObject[]) => ({ messages: [{ content }] })

test('a sentence counts as more than five tokens', () => {
  expect(tokens).toBeGreaterThan(5)
})

test('the estimate sums instructions, messages and tools', () => {
  const tools = [{ description: words }]
  expect(estimate({ system: words })).toBe(tokens)
  expect(estimate({ tools })).toBeGreaterThanOrEqual(tokens)
  expect(
    estimate({ system: words, messages: [{ content: words }, { content: [{ type: 'text', text: words }] }], tools }),
  ).toBe(3 * tokens + estimate({ tools }))
})

test('parameter names count as text in tool definitions and in tool calls', () => {
  const fields = ['customer_identifier', 'shipping_address', 'delivery_date', 'type', 'data']
  const properties = Object.fromEntries(fields.map((field) => [field, { type: 'string' }]))
  // A real tokenizer makes 50 to 54 tokens of these.
  expect(estimate({ tools: [{ name: 'order', input_schema: { type: 'object', properties } }] })).toBeWithin(45, 65)
  const call = (input: JsonObject) => estimate(said({ type: 'tool_use', id: 'toolu_1', name: 'order', input }))
  expect(call({ shipping_address: 'Oslo', type: words })).toBeGreaterThan(call({}) + tokens)
})

test('every image counts the same, whatever its size in bytes, also within a tool result', () => {
  const one = estimate(said(image))
  expect(one).toBeGreaterThan(1_000)
  expect(estimate(said({ type: 'image', source: { type: 'base64', data: words.repeat(1_000) } }))).toBe(one)
  expect(estimate(said(image, image))).toBe(2 * one)
  expect(estimate(said({ type: 'tool_result', content: [image, image] }))).toBe(2 * one)
})

test('only the plain text of a document counts, and signatures of thinking do not', () => {
  const document = (source: JsonObject) => estimate(said({ type: 'document', source }))
  const file = document({ type: 'base64', media_type: 'text/plain', data: words })
  expect(document({ type: 'text', media_type: 'text/plain', data: words })).toBe(file + tokens)
  expect(estimate(said({ type: 'thinking', thinking: words, signature: words }))).toBe(tokens)
})

test('the estimate is at least 1 and at most inputTokensMax', () => {
  expect(estimate({})).toBe(1)
  expect(estimate({ system: words }, 3)).toBe(3)
})
