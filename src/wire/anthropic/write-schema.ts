import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { objectIn } from '../loose.ts'

const formats: ReadonlySet<Json | undefined> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
])

const kept = ['type', 'title', 'description', 'enum', 'const', '$ref', 'required', 'default'] as const
const groups = ['properties', '$defs', 'definitions'] as const
const lists = ['anyOf', 'allOf'] as const

/**
 * A schema that the vendor enforces: objects have no unlisted properties, and rules that it cannot enforce are written
 * into the description. The vendor's own SDK does the same (lib/transform-json-schema).
 */
export function writeStrictSchema(schema: JsonObject): JsonObject {
  const written: Record<string, Json | undefined> = {}
  const rules: Record<string, Json | undefined> = { ...schema }
  const take = (name: string): Json | undefined => {
    const value = rules[name]
    delete rules[name]
    return value
  }
  for (const name of kept) if (name in schema) written[name] = take(name)
  for (const name of groups) if (name in schema) written[name] = eachOf(objectIn(take(name)))
  for (const name of lists) if (name in schema) written[name] = listOf(take(name))
  if ('oneOf' in schema) written['anyOf'] = listOf(take('oneOf'))
  if (isObject(schema['items'])) written['items'] = writeStrictSchema(objectIn(take('items')))
  if (formats.has(schema['format'])) written['format'] = take('format')
  if (schema['minItems'] === 0 || schema['minItems'] === 1) written['minItems'] = take('minItems')
  take('additionalProperties')
  if (schema['type'] === 'object' || 'properties' in schema) written['additionalProperties'] = false
  const said = Object.entries(rules).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  if (said.length > 0) written['description'] = describe(schema['description'], `{${said.join(', ')}}`)
  return written
}

function describe(description: Json | undefined, rules: string): string {
  return typeof description === 'string' && description !== '' ? `${description}\n\n${rules}` : rules
}

function eachOf(group: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(group).map(([name, part]) => [name, partOf(part)]))
}

function listOf(list: Json | undefined): Json {
  return Array.isArray(list) ? list.map((part: Json) => partOf(part) ?? null) : []
}

function partOf(part: Json | undefined): Json | undefined {
  return isObject(part) ? writeStrictSchema(part) : part
}
