import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { JsonObject } from '../../base/json.ts'
import { isEmptySchema, writeSchema } from './write-schema.ts'

const city = { type: 'string', description: 'Where.' }

describe('a schema', () => {
  test('ordinary keywords stay as they are', () => {
    const schema = {
      type: 'object',
      properties: {
        city,
        days: { type: ['integer', 'null'], minimum: 1, maximum: 7, default: 3 },
        tags: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'number' }] }, minItems: 1 },
        pair: { prefixItems: [city, { type: 'boolean' }], items: false },
        more: { type: 'object', additionalProperties: { type: 'string', format: 'uri' } },
      },
      required: ['city'],
      additionalProperties: false,
    }
    expect(writeSchema(schema)).toEqual(schema)
  })

  test('$schema is removed, and properties that are named like keywords stay', () => {
    const properties = { $schema: city, const: city, $ref: { type: 'string', default: { $ref: '#/x', const: 1 } } }
    const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties }
    expect(writeSchema(schema)).toEqual({ type: 'object', properties })
  })

  test.each([
    [{ const: 'a' }, { type: 'string', enum: ['a'] }],
    [
      { type: 'integer', const: 1 },
      { type: 'integer', enum: [1] },
    ],
    [{ const: true }, { const: true }],
    [
      { oneOf: [{ const: 'a' }, { const: 'b' }] },
      { oneOf: ['a', 'b'].map((value) => ({ type: 'string', enum: [value] })) },
    ],
    [
      { allOf: [city], title: 'City' },
      { ...city, title: 'City' },
    ],
  ])('%j is written as %j', (schema, written) => {
    expect(writeSchema(schema)).toEqual(written as JsonObject)
  })
})

describe('references', () => {
  test.each([
    ['$defs', '#/$defs/a~1b%20c'],
    ['definitions', '#/definitions/a~1b%20c'],
  ])('references to %s are unfolded, and the keywords beside them stay', (group, $ref) => {
    const schema = {
      type: 'object',
      properties: { from: { $ref, title: 'From' }, to: { allOf: [{ $ref }], description: 'To.' } },
      [group]: { 'a/b c': { type: 'object', properties: { city: { $ref: `#/${group}/city` } } }, city },
    }
    const place = { type: 'object', properties: { city } }
    expect(writeSchema(schema)).toEqual({
      type: 'object',
      properties: { from: { ...place, title: 'From' }, to: { ...place, description: 'To.' } },
    })
  })

  test('references to any other place are unfolded too', () => {
    const schema = { properties: { a: { anyOf: [city] }, b: { items: { $ref: '#/properties/a/anyOf/0' } } } }
    expect(writeSchema(schema)).toEqual({ properties: { a: { anyOf: [city] }, b: { items: city } } })
  })

  test('references to a schema that contains itself stay, in the form that the vendor takes', () => {
    const schema = {
      type: 'object',
      properties: { tree: { allOf: [{ $ref: '#/definitions/node' }], title: 'T', description: 'd', default: null } },
      definitions: { node: { properties: { next: { $ref: '#/definitions/node', title: 'Next' } } } },
    }
    expect(writeSchema(schema)).toEqual({
      type: 'object',
      properties: { tree: { $ref: '#/$defs/node', description: 'd', default: null } },
      $defs: { node: { properties: { next: { $ref: '#/$defs/node' } } } },
    })
  })

  test('a schema that contains itself may begin with a reference, and keeps its definitions', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/definitions/node' } } }
    expect(writeSchema({ $ref: '#/definitions/node', definitions: { node }, title: 'Node' })).toEqual({
      $ref: '#/$defs/node',
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
    })
  })

  test.each(['#/$defs/missing', 'https://example.com/schema.json', '#/properties/a/type/x', '#/%'])(
    'a reference that cannot be resolved stays: %s',
    ($ref) => {
      const schema = { properties: { a: { type: 'string' }, b: { $ref } } }
      expect(writeSchema(schema)).toEqual(schema)
    },
  )

  test('references that would unfold to an excessive size stay', () => {
    const $defs: Record<string, JsonObject> = { d0: city }
    for (let level = 1; level <= 40; level++) {
      const $ref = `#/$defs/d${level - 1}`
      $defs[`d${level}`] = { properties: { a: { $ref }, b: { $ref } } }
    }
    const schema = { properties: { x: { $ref: '#/$defs/d40' } }, $defs }
    expect(writeSchema(schema)).toEqual(schema)
  })

  test('unfolding always terminates and keeps $defs exactly where a reference stays', () => {
    const ref = fc.constantFrom('#', '#/$defs/a', '#/$defs/b', '#/properties/x', '#/$defs/none')
    const { node } = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        ref.map(($ref) => ({ $ref })),
        fc.constant({ type: 'string' }),
        fc.record({ properties: fc.dictionary(fc.constantFrom('x', 'y'), tie('node')) }),
        fc.record({ anyOf: fc.array(tie('node'), { maxLength: 3 }) }),
      ),
    }))
    const schemas = fc.record({ properties: fc.record({ x: node }), $defs: fc.record({ a: node, b: node }) })
    fc.assert(
      fc.property(schemas, (schema) => {
        const written = writeSchema(schema as JsonObject)
        const isUnfolded = !JSON.stringify(written).includes('"$ref"')
        expect(isUnfolded).toBe(written['$defs'] === undefined)
      }),
    )
  })
})

test.each([
  [{}, true],
  [{ type: 'object' }, true],
  [{ type: 'object', properties: {}, required: [] }, true],
  [{ type: 'object', additionalProperties: true }, false],
  [{ type: 'object', properties: { a: {} } }, false],
  [{ anyOf: [] }, false],
])('%j has no parameters: %p', (schema, isEmpty) => {
  expect(isEmptySchema(schema)).toBe(isEmpty)
})
