import { decoded, type Fields, fieldsIn, itemsIn, ownIn } from './fields.ts'
import { patternInstance } from './pattern-instance.ts'
import { pick, type Seeded } from './seeded.ts'

/** `true`, `false` and anything else that is no object count as a schema without keywords. */
type Schema = Fields
type Walk = { readonly root: Schema; readonly random: Seeded; readonly depth: number }

// Below the first depth optional properties are left out and the simplest branch is taken. Below the second a schema
// that requires itself without end yields null.
const depthSoft = 5
const depthHard = 24

/** A value that satisfies a JSON schema: the same for the same schema and seed. */
export function schemaInstance(schema: unknown, random: Seeded): unknown {
  const root = fieldsIn(schema)
  return instance(schema === undefined ? { type: 'object' } : schema, { root, random, depth: 0 })
}

function instance(given: unknown, walk: Walk): unknown {
  if (walk.depth > depthHard) return null
  const deeper = { ...walk, depth: walk.depth + 1 }
  const schema = settle(fieldsIn(given), deeper)
  if (schema === undefined) return null
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[Math.floor(walk.random() * schema.enum.length)] ?? null
  switch (typeOf(schema, deeper)) {
    case 'object':
      return objectInstance(schema, deeper)
    case 'array':
      return arrayInstance(schema, deeper)
    case 'integer':
      return numberInstance(schema, walk.random, true)
    case 'number':
      return numberInstance(schema, walk.random, false)
    case 'boolean':
      return walk.random() < 0.5
    case 'null':
      return null
    default:
      return stringInstance(schema, walk.random)
  }
}

/** Follows references, picks a branch of every anyOf or oneOf and merges it with the keywords beside it. */
function settle(schema: Schema, walk: Walk): Schema | undefined {
  let merged = schema
  for (let steps = 0; steps < depthHard; steps += 1) {
    const { $ref: ref, anyOf, oneOf, allOf, ...beside } = merged
    if (typeof ref === 'string')
      merged = merge({ ...beside, ...present({ anyOf, oneOf, allOf }) }, resolve(walk.root, ref))
    else if (Array.isArray(allOf))
      merged = allOf.reduce<Schema>((all, part) => merge(all, fieldsIn(part)), {
        ...beside,
        ...present({ anyOf, oneOf }),
      })
    else if (Array.isArray(anyOf)) merged = merge({ ...beside, ...present({ oneOf }) }, branchOf(anyOf, walk))
    else if (Array.isArray(oneOf)) merged = merge(beside, branchOf(oneOf, walk))
    else return merged
  }
  return undefined
}

function present(fields: Schema): Schema {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function branchOf(branches: readonly unknown[], { depth }: Walk): Schema {
  const schemas = branches.map(fieldsIn)
  const isPlain = (schema: Schema): boolean =>
    'const' in schema ||
    'enum' in schema ||
    (typeof schema.type === 'string' && !['object', 'array'].includes(schema.type))
  const something = schemas.find((schema) => schema.type !== 'null')
  return (depth > depthSoft ? (schemas.find(isPlain) ?? something) : something) ?? schemas[0] ?? {}
}

function merge(left: Schema, right: Schema): Schema {
  const merged: Record<string, unknown> = { ...left, ...right }
  if (left.properties && right.properties) {
    merged.properties = { ...fieldsIn(left.properties), ...fieldsIn(right.properties) }
  }
  if (Array.isArray(left.required) && Array.isArray(right.required)) {
    merged.required = [...new Set([...itemsIn(left.required), ...itemsIn(right.required)])]
  }
  return merged
}

/** Resolves only references into the schema itself: `#`, `#/$defs/Name`, `#/definitions/Name`. One may lead nowhere. */
function resolve(root: Schema, ref: string): Schema {
  let found: unknown = root
  for (const step of ref.split('/').slice(1)) {
    const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~')
    found = Array.isArray(found) ? found[Number(key)] : fieldsIn(found)[key]
  }
  return fieldsIn(found)
}

function typeOf(schema: Schema, { depth }: Walk): string {
  const { type } = schema
  if (typeof type === 'string') return type
  if (Array.isArray(type)) {
    const types = type.filter((name): name is string => typeof name === 'string')
    if (depth > depthSoft && types.includes('null')) return 'null'
    return types.find((name) => name !== 'null') ?? 'null'
  }
  if ('properties' in schema || 'required' in schema || 'additionalProperties' in schema) return 'object'
  if ('items' in schema || 'prefixItems' in schema || 'minItems' in schema) return 'array'
  if ('minimum' in schema || 'maximum' in schema || 'multipleOf' in schema) return 'number'
  return 'string'
}

function objectInstance(schema: Schema, walk: Walk): Record<string, unknown> {
  const properties = fieldsIn(schema.properties)
  const required = new Set(itemsIn(schema.required).filter((name) => typeof name === 'string'))
  const result: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(properties)) {
    if (walk.depth > depthSoft && !required.has(name)) continue
    setOwn(result, name, instance(property, walk))
  }
  const extra = schema.additionalProperties
  for (const name of required) if (!Object.hasOwn(result, name)) setOwn(result, name, instance(extra ?? {}, walk))
  const least = typeof schema.minProperties === 'number' ? Math.min(schema.minProperties, itemsMax) : 0
  for (let index = 0; Object.keys(result).length < least; index += 1)
    setOwn(result, `key${index}`, instance(extra ?? {}, walk))
  return result
}

/** Defines a property named `__proto__` like any other instead of setting the prototype. */
function setOwn(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
}

const itemsMax = 1_000

function arrayInstance(schema: Schema, walk: Walk): unknown[] {
  const fixed = itemsIn(schema.prefixItems)
  const least = typeof schema.minItems === 'number' ? schema.minItems : 0
  const most = typeof schema.maxItems === 'number' ? schema.maxItems : Infinity
  const natural = walk.depth > depthSoft || schema.items === false ? 0 : 2
  const length = Math.min(itemsMax, most, Math.max(least, fixed.length, fixed.length > 0 ? 0 : natural))
  const items: unknown[] = []
  const seen = new Set<string>()
  // Unique items may take a few tries; the limit ends the search where an enum has too few values.
  for (let tries = 0; items.length < length && tries < length * 20; tries += 1) {
    const item = instance(fixed[items.length] ?? schema.items ?? {}, walk)
    const text = JSON.stringify(item)
    if (schema.uniqueItems === true && seen.has(text)) continue
    seen.add(text)
    items.push(item)
  }
  return items
}

function numberInstance(schema: Schema, random: Seeded, whole: boolean): number {
  const bound = (name: string): number | undefined => (typeof schema[name] === 'number' ? schema[name] : undefined)
  const step = bound('multipleOf') ?? (whole ? 1 : 0.5)
  // An exclusive bound moves the range by one step. Where the range is narrower than that, its middle is taken.
  const low = bound('exclusiveMinimum')
  const high = bound('exclusiveMaximum')
  let least = bound('minimum') ?? (low === undefined ? undefined : low + step)
  let most = bound('maximum') ?? (high === undefined ? undefined : high - step)
  least ??= most === undefined ? 1 : Math.min(1, most)
  most ??= Math.max(least, 100)
  if (least > most) return ((low ?? least) + (high ?? most)) / 2
  const first = Math.ceil(least / step)
  const last = Math.floor(most / step)
  if (first > last) return least
  const value = (first + Math.floor(random() * Math.min(1_000, last - first + 1))) * step
  // Multiples of a step such as 0.1 carry binary rounding errors.
  return Number(value.toPrecision(12))
}

const formats: Readonly<Record<string, string>> = {
  'date-time': '2026-01-02T03:04:05Z',
  date: '2026-01-02',
  time: '03:04:05Z',
  duration: 'PT5M',
  email: 'traveller@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/road',
  url: 'https://example.com/road',
  uuid: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
}

const plainWords = ['road', 'lamp', 'river', 'green', 'morning', 'Paris', 'stone', 'bread'] as const

function stringInstance(schema: Schema, random: Seeded): string {
  const least = typeof schema.minLength === 'number' ? Math.min(schema.minLength, 100_000) : 0
  const most = typeof schema.maxLength === 'number' ? schema.maxLength : Infinity
  const format = typeof schema.format === 'string' ? ownIn(formats, schema.format) : undefined
  if (format !== undefined) return format
  const word = pick(random, plainWords)
  if (typeof schema.pattern === 'string') {
    const matching = patternInstance(schema.pattern, least, most)
    if (matching !== undefined) return matching
  }
  return word.padEnd(least, `-${word}`).slice(0, Math.max(least, Math.min(most, Math.max(word.length, least))))
}
