import { isObject, type Json, type JsonObject } from '../base/json.ts'
import { rewriteInner } from './inner-schemas.ts'
import { itemsIn, objectIn, objectsIn, textIn } from './loose.ts'
import { resolveReference } from './schema-reference.ts'

const unions = ['oneOf', 'anyOf', 'allOf'] as const

/**
 * A tool's schema as Anthropic and OpenAI take it: an object at the top level. They refuse unions there, so their branches
 * are merged: the properties of every branch are offered, and those that no valid input lacks stay required.
 */
export function writeToolSchema(schema: JsonObject): JsonObject {
  const { oneOf: _, anyOf: __, allOf: ___, ...rest } = schema
  if (!unions.some((keyword) => keyword in schema)) return { ...rest, type: 'object' }
  const { variants, required } = fieldsOf(schema, { root: schema, known: new Map() })
  const merged = {
    ...rest,
    type: 'object',
    ...(variants.size > 0 && { properties: writeProperties(variants) }),
    ...(required.size > 0 && { required: [...required] }),
  }
  return moveTargets(merged, schema)
}

const intoUnion = /^#\/(?:oneOf|anyOf|allOf)\//

/** Some generators refer to a schema where it first occurred. If that is inside a branch, it is copied to `$defs`. */
function moveTargets(merged: JsonObject, root: JsonObject): JsonObject {
  const names = new Map<string, string>()
  const moved: Record<string, Json | undefined> = {}
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
    const name = names.get(ref) ?? `__branch_${names.size}`
    if (!names.has(ref)) {
      names.set(ref, name)
      moved[name] = rewrite(resolveReference(root, ref) ?? true)
    }
    return `#/$defs/${name}`
  }
  const written = objectIn(rewrite(merged))
  return names.size === 0 ? merged : { ...written, $defs: { ...objectIn(written['$defs']), ...moved } }
}

type Fields = {
  /** The schemas of each property, by their text, so that branches which agree count once. */
  readonly variants: ReadonlyMap<string, ReadonlyMap<string, Json>>
  readonly required: ReadonlySet<string>
}

const noFields: Fields = { variants: new Map(), required: new Set() }

type Merging = {
  readonly root: JsonObject
  /** What each reference came to: a small schema can refer to itself, or to one part countless times. */
  readonly known: Map<string, Fields>
}

/** What a schema itself says of a property counts; otherwise what its branches say. */
function fieldsOf(schema: JsonObject, merging: Merging): Fields {
  const inside = (branches: Json | undefined): Fields[] =>
    objectsIn(branches).map((branch) => fieldsOf(branch, merging))
  const every = [...inside(schema['allOf']), referredFields(schema['$ref'], merging)]
  const choices = [inside(schema['anyOf']), inside(schema['oneOf'])]
  const variants = new Map<string, ReadonlyMap<string, Json>>()
  for (const [name, property] of [...every, ...choices.flat()].flatMap((fields) => [...fields.variants]))
    variants.set(name, new Map([...(variants.get(name) ?? []), ...property]))
  for (const [name, property = true] of Object.entries(objectIn(schema['properties'])))
    variants.set(name, new Map([[JSON.stringify(property), property]]))
  const own = itemsIn(schema['required']).map((name) => textIn(name))
  const required = [...every.map((fields) => fields.required), ...choices.map(requiredByAll)]
  return { variants, required: new Set([...own, ...required.flatMap((names) => [...names])]) }
}

function referredFields(ref: Json | undefined, merging: Merging): Fields {
  if (typeof ref !== 'string') return noFields
  const known = merging.known.get(ref)
  if (known !== undefined) return known
  // A schema that refers to itself says nothing more the second time.
  merging.known.set(ref, noFields)
  const found = fieldsOf(objectIn(resolveReference(merging.root, ref)), merging)
  merging.known.set(ref, found)
  return found
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
