import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Tool } from '../../capabilities/conversation.ts'
import { itemsIn, objectIn } from '../loose.ts'
import { resolveReference } from '../schema-reference.ts'

// The vendor's published limits on strict schemas in one request; it refuses a request that exceeds them.
const toolsMax = 20
const optionalMax = 24
const unionsMax = 16

const groups = ['properties', '$defs', 'definitions'] as const
const lists = ['anyOf', 'oneOf', 'allOf'] as const

/**
 * Whether the vendor takes all schemas of a request as strict ones: those of strict tools, and the answer's. Some
 * clients mark every tool as strict, however many there are.
 */
export function fitsStrictLimits(tools: readonly Tool[], answer: JsonObject | undefined): boolean {
  const strict = tools.filter(({ isStrict }) => isStrict === true)
  const schemas = strict.map(({ schema }) => schema)
  if (answer !== undefined) schemas.push(answer)
  if (schemas.some((schema) => containsItself(schema, { root: schema, open: new Set(), ended: new Set() })))
    return false
  const counts = { optional: 0, unions: 0 }
  for (const schema of schemas) count(schema, counts)
  return strict.length <= toolsMax && counts.optional <= optionalMax && counts.unions <= unionsMax
}

/** Whether the vendor can hold an answer to the schema. */
export function canBeHeld(schema: JsonObject): boolean {
  return fitsStrictLimits([], schema) && !hasFreeNames(schema)
}

/** Under a strict schema an object with free names would have to stay empty: all its properties must be listed. */
export function hasFreeNames(schema: JsonObject): boolean {
  const { type, properties, patternProperties, additionalProperties: more } = schema
  const isPlain = type === 'object' || itemsIn(type).includes('object')
  const isFree = isPlain && properties === undefined && more !== false
  if (isFree || isObject(more) || patternProperties !== undefined) return true
  return insideOf(schema).some((part) => isObject(part) && hasFreeNames(part))
}

function count(schema: JsonObject, counts: { optional: number; unions: number }): void {
  const required = new Set(itemsIn(schema['required']))
  counts.optional += Object.keys(objectIn(schema['properties'])).filter((name) => !required.has(name)).length
  if (Array.isArray(schema['type']) || 'anyOf' in schema || 'oneOf' in schema) counts.unions++
  for (const part of insideOf(schema)) if (isObject(part)) count(part, counts)
}

type Search = {
  readonly root: JsonObject
  /** The schemas around the current one, and those whose references led to it. */
  readonly open: Set<JsonObject>
  /** Schemas already known not to be recursive. */
  readonly ended: Set<JsonObject>
}

// Far deeper than any real schema: a long chain of references would exhaust the stack.
const openMax = 1_000

/** The vendor does not compile a recursive schema. One that is too deep to be searched counts as one. */
function containsItself(schema: Json | undefined, search: Search): boolean {
  const { root, open, ended } = search
  if (!isObject(schema) || ended.has(schema)) return false
  if (open.has(schema) || open.size === openMax) return true
  const ref = schema['$ref']
  const referred = typeof ref === 'string' ? resolveReference(root, ref) : undefined
  open.add(schema)
  const isRecursive = [referred, ...insideOf(schema)].some((part) => containsItself(part, search))
  open.delete(schema)
  ended.add(schema)
  return isRecursive
}

function insideOf(schema: JsonObject): readonly (Json | undefined)[] {
  return [
    ...groups.flatMap((group) => Object.values(objectIn(schema[group]))),
    ...lists.flatMap((list) => itemsIn(schema[list])),
    schema['items'],
  ]
}
