import { isObject, type Json, type JsonObject } from '../base/json.ts'
import { rewriteInner } from './inner-schemas.ts'
import { itemsIn, objectIn, objectsIn, textIn } from './loose.ts'
import { resolveReference } from './schema-reference.ts'

const unions = ['oneOf', 'anyOf', 'allOf'] as const

// Far more than real tools take, and some milliseconds: a small schema can name one of its parts countless times.
const stepsMax = 20_000

/**
 * A tool's schema as Anthropic and OpenAI take it: an object at the top level. They refuse unions there, so branches
 * are merged: the properties of every branch are offered, and those that no valid input lacks stay required. A schema
 * that takes too long to merge is left to the vendor to refuse.
 */
export function writeToolSchema(schema: JsonObject): JsonObject {
  const { oneOf: _, anyOf: __, allOf: ___, ...rest } = schema
  if (!unions.some((keyword) => keyword in schema)) return { ...rest, type: 'object' }
  const merging: Merging = { root: schema, known: new Map(), stepsLeft: stepsMax }
  const { variants, required } = fieldsOf(schema, merging)
  const merged = {
    ...rest,
    type: 'object',
    ...(variants.size > 0 && { properties: writeProperties(variants) }),
    ...(required.size > 0 && { required: [...required] }),
  }
  const written = merging.stepsLeft > 0 ? moveTargets(merged, merging) : merged
  return merging.stepsLeft > 0 ? written : { ...schema, type: 'object' }
}

const intoUnion = /^#\/(?:oneOf|anyOf|allOf)\//

/** Some generators refer to a schema where it first occurred. If that is inside a branch, it is copied to `$defs`. */
function moveTargets(merged: JsonObject, merging: Merging): JsonObject {
  const names = new Map<Json, string>()
  const moved: Record<string, Json> = {}
  const rewrite = (schema: Json): Json => {
    if (!isObject(schema)) return schema
    const written = Object.entries(schema).map(([keyword, value = null]) => [
      keyword,
      keyword === '$ref' ? follow(value) : rewriteInner(keyword, value, rewrite),
    ])
    return Object.fromEntries(written)
  }
  const follow = (ref: Json): Json => {
    if (typeof ref !== 'string' || !intoUnion.test(ref)) return ref
    const target = resolveReference(merging.root, ref) ?? true
    const name = names.get(target) ?? `__branch_${names.size}`
    names.set(target, name)
    return `#/$defs/${name}`
  }
  const written = objectIn(rewrite(merged))
  // Copies may name further targets, which then come later in the same map.
  for (const [target, name] of names) {
    merging.stepsLeft -= stepsToCopy(target, merging.stepsLeft)
    if (merging.stepsLeft <= 0) break
    moved[name] = rewrite(target)
  }
  return names.size === 0 ? merged : { ...written, $defs: { ...objectIn(written['$defs']), ...moved } }
}

/** How many values there are to copy, counted as far as `max`. */
function stepsToCopy(value: Json, max: number): number {
  if (typeof value !== 'object' || value === null) return 1
  let steps = 1
  for (const part of Object.values<Json | undefined>(value)) {
    if (steps >= max) break
    steps += stepsToCopy(part ?? null, max - steps)
  }
  return steps
}

type Fields = {
  /** The schemas of each property, by their text, so that branches which agree count once. */
  readonly variants: ReadonlyMap<string, ReadonlyMap<string, Json>>
  readonly required: ReadonlySet<string>
}

const noFields: Fields = { variants: new Map(), required: new Set() }

type Merging = {
  readonly root: JsonObject
  /** What each schema came to: a schema can refer to itself, or to one part countless times. */
  readonly known: Map<JsonObject, Fields>
  /** Zero or less: it takes too long. */
  stepsLeft: number
}

function fieldsOf(schema: JsonObject, merging: Merging): Fields {
  const known = merging.known.get(schema)
  if (known !== undefined) return known
  // A schema that refers to itself says nothing more the second time.
  merging.known.set(schema, noFields)
  const found = readFields(schema, merging)
  merging.known.set(schema, found)
  return found
}

/** What a schema itself says of a property counts; otherwise what its branches say. */
function readFields(schema: JsonObject, merging: Merging): Fields {
  const inside = (branches: Json | undefined): Fields[] =>
    objectsIn(branches).map((branch) => fieldsOf(branch, merging))
  merging.stepsLeft -= 10 // also limits how deep references may lead
  if (merging.stepsLeft <= 0) return noFields
  const every = [...inside(schema['allOf']), referredFields(schema['$ref'], merging)]
  const choices = [inside(schema['anyOf']), inside(schema['oneOf'])]
  const variants = new Map<string, Map<string, Json>>()
  for (const fields of [...every, ...choices.flat()]) addFields(variants, fields, merging)
  if (merging.stepsLeft <= 0) return noFields
  for (const [name, property = true] of Object.entries(objectIn(schema['properties'])))
    variants.set(name, new Map([[JSON.stringify(property), property]]))
  const own = itemsIn(schema['required']).map((name) => textIn(name))
  const required = [...every.map((fields) => fields.required), ...choices.map(requiredByAll)]
  return { variants, required: new Set([...own, ...required.flatMap((names) => [...names])]) }
}

function addFields(to: Map<string, Map<string, Json>>, { variants, required }: Fields, merging: Merging): void {
  merging.stepsLeft -= required.size
  for (const [name, schemas] of variants) {
    merging.stepsLeft -= schemas.size
    if (merging.stepsLeft <= 0) return
    const known = to.get(name)
    if (known === undefined) to.set(name, new Map(schemas))
    else for (const [text, schema] of schemas) known.set(text, schema)
  }
}

function referredFields(ref: Json | undefined, merging: Merging): Fields {
  return typeof ref === 'string' ? fieldsOf(objectIn(resolveReference(merging.root, ref)), merging) : noFields
}

function requiredByAll(branches: readonly Fields[]): ReadonlySet<string> {
  const [first, ...others] = branches
  return new Set([...(first?.required ?? [])].filter((name) => others.every(({ required }) => required.has(name))))
}

function writeProperties(variants: Fields['variants']): JsonObject {
  return Object.fromEntries(
    [...variants].map(([name, schemas]) => {
      const [first = true, ...others] = schemas.values()
      return [name, others.length === 0 ? first : { anyOf: [first, ...others] }]
    }),
  )
}
