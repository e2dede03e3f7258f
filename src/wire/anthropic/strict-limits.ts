import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Conversation } from '../../capabilities/conversation.ts'
import { itemsIn, objectIn } from '../loose.ts'

// The vendor's published limits on what one request may hold a model to; it refuses a request that goes beyond.
const toolsMax = 20
const optionalMax = 24
const unionsMax = 16

const groups = ['properties', '$defs', 'definitions'] as const
const lists = ['anyOf', 'oneOf', 'allOf'] as const

/** Whether the vendor takes all the schemas of a request as strict ones. Clients mark every tool so, however many there are. */
export function isHeldTo({ tools, format }: Conversation): boolean {
  const strict = tools.filter(({ isStrict }) => isStrict === true)
  const schemas = strict.map(({ schema }) => schema)
  if (format?.kind === 'schema') schemas.push(format.schema)
  const counts = { optional: 0, unions: 0 }
  for (const schema of schemas) count(schema, counts)
  return strict.length <= toolsMax && counts.optional <= optionalMax && counts.unions <= unionsMax
}

function count(schema: JsonObject, counts: { optional: number; unions: number }): void {
  const required = new Set(itemsIn(schema['required']))
  counts.optional += Object.keys(objectIn(schema['properties'])).filter((name) => !required.has(name)).length
  if (Array.isArray(schema['type']) || 'anyOf' in schema || 'oneOf' in schema) counts.unions++
  const inside: readonly (Json | undefined)[] = [
    ...groups.flatMap((group) => Object.values(objectIn(schema[group]))),
    ...lists.flatMap((list) => itemsIn(schema[list])),
    schema['items'],
  ]
  for (const part of inside) if (isObject(part)) count(part, counts)
}
