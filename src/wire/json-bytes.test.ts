import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { findTopLevelString, valueByteAfter, withModel } from './json-bytes.ts'

const key = Buffer.from('model')

function found(text: string): string | undefined {
  const bytes = Buffer.from(text)
  const span = findTopLevelString(bytes, Math.max(0, text.indexOf('{')), key)
  return span && bytes.toString('utf8', span.start, span.end)
}

describe('the search for a string at the top level of an object', () => {
  test.each([
    ['{"model":"a"}', 'a'],
    ['{ "id" : "x" , "model" : "a" }', 'a'],
    ['{"choices":[{"model":"inner"}],"model":"outer"}', 'outer'],
    ['{"a":{"model":"inner"},"model":"outer"}', 'outer'],
    ['{"text":"\\"model\\":\\"fake\\"","model":"a"}', 'a'],
    ['{"text":"model","model":"a"}', 'a'],
    ['{"x":"\\\\","model":"a"}', 'a'],
    ['{"model":"日本"}', '日本'],
    ['{"model":""}', ''],
    ['data: {"model":"a"}\n\n', 'a'],
    ['{"models":"b","model":"a"}', 'a'],
  ])('the value is found in %s', (text, value) => {
    expect(found(text)).toBe(value)
  })

  test.each([
    '{}',
    '{"id":"x"}',
    '{"model":null}',
    '{"model":5}',
    '{"model":{"model":"a"}}',
    '{"choices":[{"model":"inner"}]}',
    '["model","a"]',
    '{"a":"model"}',
    '{"model"',
    '{"model":',
    '',
    '{"id":"x"},{"model":"a"}',
  ])('no value is found in %j', (text) => {
    expect(found(text)).toBeUndefined()
  })

  test('the value found is the one that a JSON parser finds', () => {
    const objects = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 5 })
    fc.assert(
      fc.property(objects, fc.string(), objects, (before, model, after) => {
        const { model: _, ...first } = before
        const text = JSON.stringify({ ...first, nested: after, model })
        const given = found(text)
        expect(given === undefined ? undefined : JSON.parse(`"${given}"`)).toBe(model)
      }),
    )
  })
})

test('only the model is replaced, and the same bytes are returned if nothing changes', () => {
  const bytes = Buffer.from('{"id":1,"model":"dated-2026","x":"model"}')
  const withId = (id: string) => withModel(bytes, 0, Buffer.from(id))
  expect(Buffer.from(withId('ours')).toString()).toBe('{"id":1,"model":"ours","x":"model"}')
  expect(withId('dated-2026')).toBe(bytes)
  const bare = Buffer.from('{"x":"model"}')
  expect(withModel(bare, 0, Buffer.from('ours'))).toBe(bare)
})

describe('the first byte of a value', () => {
  const usage = Buffer.from('"usage"')
  test.each([
    ['{"usage":{"a":1}}', '{'],
    ['{"usage" : null}', 'n'],
    ['{"usage":\n\t[1]}', '['],
    ['{"a":"\\"usage\\":{"}', '\0'],
    ['{"a":1}', '\0'],
    ['{"a":"usage"}', '\0'],
    ['{"usage"', '\0'],
    ['{"usage":', '\0'],
  ])('the first byte of the value of usage is found in %j, or 0 if there is none', (text, byte) => {
    expect(valueByteAfter(Buffer.from(text), usage)).toBe(byte.charCodeAt(0))
  })
})
