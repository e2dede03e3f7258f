import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { z } from 'zod'
import { GatewayError } from '../base/errors.ts'
import { parseBody } from '../base/json.ts'
import { messagesRequest } from './anthropic/schema.ts'
import { checkBy, parseBy } from './check.ts'
import { chatRequest } from './openai/chat-schema.ts'

const checkChat = checkBy(chatRequest)
const checkMessages = checkBy(messagesRequest)

test('a good body is returned as it is, with its unknown fields', () => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hi', odd: [1] }], vendor_field: { a: null } }
  expect(checkChat(body)).toBe(body as never)
})

test('a bad body is refused with the name of its wrong field, even after a good body', () => {
  checkChat({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
  const refused = expect(() => checkChat({ model: 'm', messages: [{ role: 'user', content: 7 }] }))
  refused.toThrow(expect.objectContaining({ kind: 'bad-request' }))
  refused.toThrow("Invalid 'messages[0].content'")
})

test('a number that kept its own text is not taken for an object', () => {
  const limits = { depthMax: 9, keysMax: 9 }
  const strict = z.object({ size: z.strictObject({ width: z.int().optional() }) })
  const loose = z.object({ size: z.looseObject({ width: z.int().optional() }) })
  for (const schema of [strict, loose]) {
    const body = parseBody('{"size":123456789012345678901}', limits)
    expect(() => parseBy(schema, body)).toThrow("Invalid 'size': expected object, received number.")
    expect(() => checkBy(schema)(body)).toThrow("Invalid 'size': expected object, received number.")
  }
  const body = parseBody('{"size":{"unknown":123456789012345678901}}', limits)
  expect(JSON.stringify(parseBy(loose, body))).toBe('{"size":{"unknown":123456789012345678901}}')
  expect(checkBy(loose)(body)).toBe(body as never)
})

// The library's compiled checks are new: they must accept exactly what the schema accepts.
const value = fc.oneof(
  fc.constantFrom(null, true, 0, 1, -3, 0.5, 1e21, '', 'auto', 'text', 'low', {}, [], [{}], undefined),
  fc.jsonValue({ maxDepth: 2 }),
)
const part = fc.record(
  { type: fc.constantFrom('text', 'image_url', 'odd'), text: value, image_url: value },
  { requiredKeys: [] },
)
const message = fc.record(
  {
    role: fc.constantFrom('user', 'user', 'assistant', 'assistant', 'system', 'tool', 'odd'),
    content: fc.oneof({ weight: 8, arbitrary: fc.string() }, fc.array(part, { maxLength: 2 }), value),
    name: value,
    tool_calls: value,
    tool_call_id: value,
  },
  { requiredKeys: ['role', 'content'] },
)
const fields = [
  ...new Set([...Object.keys(chatRequest.shape), ...Object.keys(messagesRequest.shape), '__proto__', 'odd']),
]
const body = fc
  .record({
    messages: fc.oneof({ weight: 8, arbitrary: fc.array(message, { minLength: 1, maxLength: 2 }) }, value),
    more: fc.dictionary(fc.constantFrom(...fields), value, { maxKeys: 3 }),
  })
  .map(({ messages, more }) => ({ model: 'm', max_tokens: 5, messages, ...more }))

test.each([
  ['chat', checkChat, chatRequest],
  ['messages', checkMessages, messagesRequest],
] as const)('the check for %s accepts a body exactly where its schema accepts it', (_name, check, schema) => {
  let taken = 0
  fc.assert(
    fc.property(body, (given) => {
      const isTaken = schema.safeParse(given).success
      if (isTaken) taken++
      try {
        check(given)
        expect(isTaken).toBe(true)
      } catch (thrown) {
        expect([isTaken, thrown instanceof GatewayError]).toEqual([false, true])
      }
    }),
    { numRuns: 2_000 },
  )
  expect(taken).toBeGreaterThan(20)
})
