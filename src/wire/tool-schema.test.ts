import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../base/json.ts'
import { parseExactly } from './loose.ts'
import { writeToolSchema } from './tool-schema.ts'
import { writeStrictSchema } from './anthropic/write-schema.ts'

const many = (count: number, made: (index: number) => JsonObject) =>
  Array.from({ length: count }, (_, index) => made(index))
const byName = (schemas: readonly JsonObject[]) => Object.fromEntries(schemas.map((schema, at) => [`d${at}`, schema]))

describe('unions at the top of a tool schema are merged', () => {
  const one = { properties: { kind: { const: 'one' }, a: { type: 'string' } }, required: ['kind', 'a'] }
  const two = { properties: { kind: { const: 'two' }, b: { type: 'integer' } }, required: ['kind', 'b'] }
  const kinds = { anyOf: [{ const: 'one' }, { const: 'two' }] }
  const properties = { kind: kinds, a: { type: 'string' }, b: { type: 'integer' } }

  test.each(['anyOf', 'oneOf'])('%s offers the properties of every branch, and requires what all require', (name) => {
    expect(writeToolSchema({ description: 'd', [name]: [one, two] })).toEqual({
      type: 'object',
      description: 'd',
      properties,
      required: ['kind'],
    })
  })

  test('allOf requires what each part requires', () => {
    expect(writeToolSchema({ allOf: [one, two] })).toEqual({ type: 'object', properties, required: ['kind', 'a', 'b'] })
  })

  test('what the schema itself says of a property counts, and stays required', () => {
    const outer = { properties: { kind: { enum: ['one', 'two'] }, id: {} }, required: ['id'], oneOf: [one, two] }
    expect(writeToolSchema(outer)).toEqual({
      type: 'object',
      properties: { ...properties, kind: { enum: ['one', 'two'] }, id: {} },
      required: ['id', 'kind'],
    })
  })

  test('references in branches are followed, however often and wherever they lead', () => {
    const levels = Array.from({ length: 60 }, (_, level) => {
      const next = { $ref: `#/$defs/d${level + 1}` }
      return [`d${level}`, { anyOf: [next, next] }] as const
    })
    const $defs = { ...Object.fromEntries(levels), d60: one, self: { allOf: [{ $ref: '#/$defs/self' }, two] } }
    const written = writeToolSchema({ $defs, anyOf: [{ $ref: '#/$defs/d0' }, { $ref: '#/$defs/self' }] })
    expect(written).toEqual({ type: 'object', $defs, properties, required: ['kind'] })
  })

  test('references into the branches lead to copies of what they named', () => {
    const id = { type: 'string', format: 'uuid' }
    const node = { properties: { id, next: { $ref: '#/anyOf/0' } } }
    const ofIds = { type: 'array', items: { $ref: '#/anyOf/0/properties/id' } }
    const $defs = { own: { $ref: '#/anyOf/0/properties/id' } }
    const most = { maximum: parseExactly('12345678901234567890') ?? null }
    expect(writeToolSchema({ $defs, anyOf: [node, { properties: { ids: ofIds, $ref: id, most } }] })).toEqual({
      type: 'object',
      properties: {
        id,
        next: { $ref: '#/$defs/__branch_1' },
        ids: { type: 'array', items: { $ref: '#/$defs/__branch_0' } },
        $ref: id,
        most,
      },
      $defs: {
        own: { $ref: '#/$defs/__branch_0' },
        __branch_0: id,
        __branch_1: { properties: { id, next: { $ref: '#/$defs/__branch_1' } } },
      },
    })
  })

  const wide = { properties: byName(many(3_000, (at) => ({ const: at }))) }

  // Such schemas, as large as a body may be, would occupy the thread of all requests for minutes, or fill the memory.
  test.each<[string, JsonObject]>([
    ['thousands of branches', { anyOf: many(3_000, (at) => ({ properties: { a: { const: at } } })) }],
    [
      'branches that all refer to one with many properties',
      { $defs: { wide }, anyOf: many(300, (at) => ({ title: String(at), $ref: '#/$defs/wide' })) },
    ],
    [
      'a long chain of references',
      {
        $defs: byName(many(3_000, (at) => ({ properties: { [`p${at}`]: true }, $ref: `#/$defs/d${at + 1}` }))),
        anyOf: [{ $ref: '#/$defs/d0' }],
      },
    ],
    [
      'references to places in a branch that contain each other',
      {
        anyOf: [
          {
            properties: {
              x: { allOf: many(6_000, () => ({ title: 't' })) },
              y: { $ref: '#/anyOf/0' },
              z: { $ref: '#/anyOf/0/properties/x' },
            },
          },
        ],
      },
    ],
  ])('a schema with %s is left as it is', (_which, schema) => {
    expect(writeToolSchema(schema)).toEqual({ ...schema, type: 'object' })
  })

  test('a place that is written in many ways is copied once', () => {
    const named = ['id', '%69d', 'i%64', '%69%64'].map((name, at) => [
      `r${at}`,
      { $ref: `#/anyOf/0/properties/${name}` },
    ])
    const id = { type: 'string' }
    const written = writeToolSchema({ anyOf: [{ properties: { id, ...Object.fromEntries(named) } }] })
    expect(written['$defs']).toEqual({ __branch_0: id })
  })

  test('a strict tool has the properties of every branch too', () => {
    expect(writeStrictSchema(writeToolSchema({ anyOf: [one, two] }))).toEqual({
      type: 'object',
      properties,
      required: ['kind'],
      additionalProperties: false,
    })
  })
})
