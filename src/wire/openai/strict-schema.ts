import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { itemsIn, objectIn } from '../loose.ts'

/** What every vendor with strict schemas takes in them; for any other keyword some refuse the request. */
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

/** Whether a model may be held to it: every object names all it may have, and must have all of that. */
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
