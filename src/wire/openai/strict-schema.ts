import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import type { Tool } from '../../capabilities/conversation.ts'
import { itemsIn, objectIn } from '../loose.ts'

/** The keywords that every vendor with strict schemas takes; some refuse the request for any other. */
const plain: ReadonlySet<string> = new Set([
  'type',
  'title',
  'description',
  'enum',
  'const',
  '$ref',
  'required',
  '$schema',
])
const groups = ['properties', '$defs', 'definitions'] as const
const known: ReadonlySet<string> = new Set([...plain, ...groups, 'anyOf', 'items', 'additionalProperties'])

/** Whether a vendor can enforce the schema: every object lists all of its properties and requires them all. */
export function canBeStrict(schema: JsonObject): boolean {
  if (!Object.keys(schema).every((keyword) => known.has(keyword))) return false
  const { type, properties, required, additionalProperties: more, items } = schema
  if (type === 'object' || properties !== undefined) {
    const names = new Set(itemsIn(required))
    if (more !== false || !Object.keys(objectIn(properties)).every((name) => names.has(name))) return false
  }
  const inside: readonly (Json | undefined)[] = [
    ...groups.flatMap((group) => Object.values(objectIn(schema[group]))),
    ...itemsIn(schema['anyOf']),
    ...(items === undefined ? [] : [items]),
  ]
  return inside.every((part) => isObject(part) && canBeStrict(part))
}

/**
 * Whether the vendor is to enforce a tool's schema. Anthropic takes optional properties in strict tools, for which
 * OpenAI refuses the request, so a schema written for Anthropic stays strict only where every vendor can enforce it.
 */
export function strictFor({ protocol }: ChatAsk, { schema, isStrict }: Tool): boolean | undefined {
  return isStrict === true && protocol === 'anthropic' ? canBeStrict(schema) : isStrict
}

/**
 * The schema of a tool whose `parameters` are left out, which means that it has none. A strict schema has to say so:
 * the vendor refuses one that leaves an object open.
 */
export function noParameters(isStrict: boolean | null | undefined): JsonObject {
  return { type: 'object', properties: {}, ...(isStrict === true && { additionalProperties: false }) }
}
