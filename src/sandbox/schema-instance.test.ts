import { describe, expect, test } from 'bun:test'
import { schemaInstance } from './schema-instance.ts'
import { seeded } from './seeded.ts'

const make = (schema: unknown, seed = 1): unknown => schemaInstance(schema, seeded(seed))

describe('an instance of a schema', () => {
  test.each([
    [{ const: 7 }, 7],
    [{ enum: ['only'] }, 'only'],
    [{ type: 'null' }, null],
    [{ type: 'string', format: 'date' }, '2026-01-02'],
    [{ type: 'string', pattern: '^[A-Z]{3}$' }, 'ABC'],
    [{ type: 'integer', minimum: 5, maximum: 5 }, 5],
    [{ type: 'integer', exclusiveMinimum: 4, exclusiveMaximum: 6 }, 5],
    [{ type: 'integer', minimum: 8, maximum: 15, multipleOf: 7 }, 14],
    [{ type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.1 }, 0.05],
    [{ prefixItems: [{ const: 1 }, { const: 'b' }], items: false }, [1, 'b']],
    [
      { type: 'array', items: { enum: ['a', 'b', 'c'] }, minItems: 3, uniqueItems: true, maxItems: 3 },
      expect.arrayContaining(['a', 'b', 'c']),
    ],
    [{ type: ['null', 'boolean'] }, expect.any(Boolean)],
    [{ anyOf: [{ type: 'null' }, { const: 'some' }] }, 'some'],
    [{ oneOf: [{ const: 1 }, { const: 2 }] }, 1],
    [
      { allOf: [{ properties: { a: { const: 1 } }, required: ['a'] }, { properties: { b: { const: 2 } } }] },
      { a: 1, b: 2 },
    ],
    [{ $ref: '#/$defs/Name', $defs: { Name: { const: 'Ada' } } }, 'Ada'],
    [{ $ref: '#/$defs/100%', $defs: { '100%': { const: 'Ada' } } }, 'Ada'],
    [{ type: 'object', required: ['extra'], additionalProperties: { const: 3 } }, { extra: 3 }],
    [{ type: 'string', nullable: true, minLength: 12, maxLength: 12 }, expect.stringMatching(/^.{12}$/)],
    [undefined, {}],
  ])('an instance satisfies the schema %j', (schema, expected) => {
    expect(make(schema)).toEqual(expected)
  })

  test.each([
    '^[A-Z]{3}-\\d{4}$',
    '^(red|green)_[a-f0-9]{2,3}$',
    '^(?:sku|ean):(?<code>[0-9]{8,13})$',
    '^[^\\s@]+@[^\\s@]+\\.(com|org)$',
    '^v\\d+\\.\\d+(-rc\\d+)?$',
    '^[a-z0-9\\-\\_]{20,}$',
    '^\\p{Lu}\\p{Ll}+ [^a-zA-Z0-9 ]$',
    'x{3}y*?z|never',
    '^.{5}[\\]\\[]$',
    '^\\(\\d{3}\\) \\d{3}-\\d{4}$',
    '^[一-龥]{2}$',
  ])('a text matches the pattern %s', (pattern) => {
    const flags = pattern.includes('\\p') ? 'u' : ''
    expect(make({ type: 'string', pattern })).toEqual(expect.stringMatching(new RegExp(pattern, flags)))
  })

  test('a text matches its pattern and has the wanted length', () => {
    const pattern = '^[a-z]+-[0-9]$'
    const text = make({ type: 'string', pattern, minLength: 30, maxLength: 31 })
    expect(text).toMatch(new RegExp(pattern))
    expect(String(text).length).toBeWithin(30, 32)
  })

  test.each(['^(a)\\1$', '^(?=.*\\d)(?!x)[a-z0-9]{9}$', '([', '(?P<x>a)', '((a{999}){999}){999}', '^\\x41\\u0042{7}$'])(
    'a pattern that nothing can be built from yields a word: %s',
    (pattern) => {
      expect(make({ type: 'string', pattern })).toEqual(expect.any(String))
    },
  )

  test('a pattern of excessive length or depth yields a word at once', () => {
    for (const pattern of ['^'.repeat(50_000), `${'(?:'.repeat(20_000)}zz${')'.repeat(20_000)}`]) {
      expect(make({ type: 'string', pattern, minLength: 2_000 })).toEqual(expect.any(String))
    }
  })

  test('a number respects multipleOf, minimum and maximum together', () => {
    const value = make({ type: 'number', minimum: 0.25, maximum: 0.95, multipleOf: 0.1 })
    expect(Number(value) * 10).toBeCloseTo(Math.round(Number(value) * 10), 9)
    expect(value).toBeGreaterThanOrEqual(0.25)
    expect(value).toBeLessThanOrEqual(0.95)
  })

  test('a recursive schema that may end yields a finite instance', () => {
    const tree = {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: { value: { type: 'string' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
          required: ['value', 'next'],
          additionalProperties: false,
        },
      },
    }
    const texts = JSON.stringify(make(tree)).split('"next":')
    expect(texts.length).toBeGreaterThan(1)
    expect(texts.length).toBeLessThan(12)
    expect(texts.at(-1)).toMatch(/^null}+$/)
  })

  test('a schema that requires itself without end yields a truncated instance', () => {
    expect(JSON.stringify(make({ properties: { self: { $ref: '#' } }, required: ['self'] })).length).toBeLessThan(1_000)
    expect(make({ $ref: '#' })).toBeNull()
  })

  test('the same seed yields the same instance', () => {
    const schema = {
      properties: { a: { type: 'number' }, b: { type: 'string' }, c: { type: 'array', items: { type: 'integer' } } },
    }
    expect(make(schema, 5)).toEqual(make(schema, 5))
  })
})
