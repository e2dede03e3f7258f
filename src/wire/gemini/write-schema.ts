import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { follow } from '../schema-reference.ts'

/**
 * A JSON Schema for `parametersJsonSchema` and `responseJsonSchema`. The older fields take a subset of OpenAPI's schemas,
 * and refuse the whole request for a keyword they do not know; translated into it, unions, bounds and references are lost.
 * The newer ones take JSON Schema and ignore what they do not know. What they are known to stumble over is put plainly:
 * references are replaced by what they refer to, `const` becomes an `enum`, and `$schema` goes.
 */
export function writeSchema(schema: JsonObject): JsonObject {
  const inlined = write(schema, { root: schema, trail: [], left: { nodes: nodesMax } })
  // One that contains itself has no end, and a small one can unfold into gigabytes: those keep their references.
  return (inlined ?? writeReferring(schema)) as JsonObject
}

/** The vendor wants no parameters at all from a function without any. */
export function isEmptySchema(schema: JsonObject): boolean {
  const { properties, additionalProperties: more = false } = schema
  const hasNone = properties === undefined || (isObject(properties) && Object.keys(properties).length === 0)
  return hasNone && more === false && !['$ref', 'anyOf', 'oneOf', 'allOf'].some((keyword) => keyword in schema)
}

// The largest tool schemas in use hold a few hundred.
const nodesMax = 5_000

/** Where schemas stand inside a schema: under names, in lists, or alone. Anything else is a plain value. */
const named: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions'])
const nested: ReadonlySet<string> = new Set([
  'items',
  'prefixItems',
  'anyOf',
  'oneOf',
  'allOf',
  'additionalProperties',
  'not',
])

type Unfolding = {
  readonly root: JsonObject
  /** The references that led here. */
  readonly trail: readonly string[]
  readonly left: { nodes: number }
}

/** The schema with its references unfolded; undefined where that has no end. */
function write(schema: Json, unfolding: Unfolding): Json | undefined {
  if (!isObject(schema)) return schema
  if (--unfolding.left.nodes < 0) return undefined
  const { $ref: ref, ...siblings } = schema
  if (typeof ref !== 'string') return rewrite(schema, (inner) => write(inner, unfolding), ['$defs', 'definitions'])

  const target = follow(unfolding.root, ref)
  if (target === undefined || unfolding.trail.includes(ref)) return undefined
  const unfolded = write(target, { ...unfolding, trail: [...unfolding.trail, ref] })
  const beside = write(siblings, unfolding)
  if (unfolded === undefined || beside === undefined) return undefined
  return isObject(unfolded) && isObject(beside) ? { ...unfolded, ...beside } : unfolded
}

/** The schema with its references, in the one form the vendor takes them: to `$defs`. */
function writeReferring(schema: Json): Json {
  if (!isObject(schema)) return schema
  const { definitions, ...rest } = schema
  const renamed = isObject(definitions) && rest['$defs'] === undefined ? { ...rest, $defs: definitions } : schema
  return writeReference(rewrite(renamed, writeReferring) ?? schema)
}

/** Beside a reference the vendor takes a description and a default, and refuses the rest. */
function writeReference(schema: JsonObject): JsonObject {
  const { $ref: ref, description, default: fallback, $defs: definitions } = schema
  if (typeof ref !== 'string') return schema
  return {
    $ref: ref.replace(/^#\/definitions\//, '#/$defs/'),
    ...(description !== undefined && { description }),
    ...(fallback !== undefined && { default: fallback }),
    ...(definitions !== undefined && { $defs: definitions }),
  }
}

/** One schema with those inside it rewritten; undefined where one of them is. */
function rewrite(
  schema: JsonObject,
  inside: (inner: Json) => Json | undefined,
  dropped: readonly string[] = [],
): JsonObject | undefined {
  const written: Record<string, Json | undefined> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (value === undefined || keyword === '$schema' || dropped.includes(keyword)) continue
    const rewritten = rewriteKeyword(keyword, value, inside)
    if (rewritten === undefined) return undefined
    written[keyword] = rewritten
  }
  return withoutConst(withoutLoneAllOf(written))
}

function rewriteKeyword(keyword: string, value: Json, inside: (inner: Json) => Json | undefined): Json | undefined {
  if (named.has(keyword) && isObject(value)) {
    const entries = Object.entries(value).map(([name, inner]) => [name, inside(inner ?? true)] as const)
    return entries.some(([, inner]) => inner === undefined) ? undefined : Object.fromEntries(entries)
  }
  if (!nested.has(keyword)) return value
  if (!Array.isArray(value)) return inside(value)
  const list: (Json | undefined)[] = value.map(inside)
  return list.every((inner) => inner !== undefined) ? list : undefined
}

/** `const` is no keyword of the vendor's; an `enum` of one says the same. */
function withoutConst(schema: JsonObject): JsonObject {
  const { const: only, ...rest } = schema
  if ((typeof only !== 'string' && typeof only !== 'number') || rest['enum'] !== undefined) return schema
  return { type: typeof only, ...rest, enum: [only] }
}

/** Neither is `allOf`; generators wrap a single reference in one, to write a description beside it. */
function withoutLoneAllOf(schema: JsonObject): JsonObject {
  const { allOf, ...rest } = schema
  if (!Array.isArray(allOf) || allOf.length !== 1) return schema
  const only = (allOf as readonly Json[])[0]
  return isObject(only) ? { ...only, ...rest } : schema
}
