import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { canBeStrict } from './strict-schema.ts'

const text = { type: 'string' }
const strict = { type: 'object', properties: { a: text }, required: ['a'], additionalProperties: false }
const { additionalProperties: _, ...open } = strict
/** A strict schema with any schema inside it. */
const around = (inner: JsonObject) => ({ ...strict, properties: { a: inner } })

test.each<[string, JsonObject]>([
  ['a text', text],
  ['an object', strict],
  ['an object with $schema', { ...strict, $schema: 'https://json-schema.org/draft/2020-12/schema' }],
  ['a list of objects', { type: 'array', items: strict }],
  ['a choice of schemas', around({ anyOf: [strict, { type: 'null' }] })],
  ['definitions under their older name', { ...around({ $ref: '#/definitions/x' }), definitions: { x: strict } }],
  ['definitions', { ...around({ $ref: '#/$defs/x' }), $defs: { x: strict } }],
])('a schema can be strict: %s', (_name, schema) => {
  expect(canBeStrict(schema)).toBe(true)
})

test.each<[string, JsonObject]>([
  ['allows further properties', open],
  ['allows further properties without saying that it is an object', { properties: { a: text }, required: ['a'] }],
  ['has an optional property', { ...strict, required: [] }],
  ['has a keyword that some vendors refuse', { ...text, minLength: 1 }],
])('a schema cannot be strict if any part of it %s', (_name, schema) => {
  for (const whole of [
    schema,
    around(schema),
    { type: 'array', items: schema },
    around({ anyOf: [text, schema] }),
    { ...strict, $defs: { x: schema } },
    { ...strict, definitions: { x: schema } },
  ]) {
    expect(canBeStrict(whole)).toBe(false)
  }
})
