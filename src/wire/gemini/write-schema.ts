import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { rewriteInner } from '../inner-schemas.ts'
import { resolveReference } from '../schema-reference.ts'

/**
 * Writes a JSON Schema for `parametersJsonSchema` and `responseJsonSchema`. The vendor's older fields take a subset of
 * OpenAPI schemas and refuse the whole request for an unknown keyword; translating into them loses unions, bounds and
 * references. The newer fields take JSON Schema and ignore unknown keywords. Only what they are known to fail on is
 * rewritten: references are replaced by their targets, `const` becomes an `enum`, and `$schema` is removed.
 */
export function writeSchema(schema: JsonObject): JsonObject {
  const inlined = write(schema, { root: schema, trail: [], left: { nodes: nodesMax } })
  // A recursive schema unfolds without end, and a small one can unfold into gigabytes: these keep their references.
  return (inlined ?? writeReferring(schema)) as JsonObject
}

/** The vendor wants a function without parameters to have no schema at all. */
export function isEmptySchema(schema: JsonObject): boolean {
  const { properties, additionalProperties: more = false } = schema
  const hasNone = properties === undefined || (isObject(properties) && Object.keys(properties).length === 0)
  return hasNone && more === false && !['$ref', 'anyOf', 'oneOf', 'allOf'].some((keyword) => keyword in schema)
}

// The largest tool schemas in use have a few hundred nodes.
const nodesMax = 5_000

type Unfolding = {
  readonly root: JsonObject
  /** The references followed to get here. */
  readonly trail: readonly string[]
  readonly left: { nodes: number }
}

/** The schema with its references unfolded; undefined where that would not end. */
function write(schema: Json, unfolding: Unfolding): Json | undefined {
  if (!isObject(schema)) return schema
  if (--unfolding.left.nodes < 0) return undefined
  const { $ref: ref, ...siblings } = schema
  if (typeof ref !== 'string') return rewrite(schema, (inner) => write(inner, unfolding), ['$defs', 'definitions'])

  const target = resolveReference(unfolding.root, ref)
  if (target === undefined || unfolding.trail.includes(ref)) return undefined
  const unfolded = write(target, { ...unfolding, trail: [...unfolding.trail, ref] })
  const beside = write(siblings, unfolding)
  if (unfolded === undefined || beside === undefined) return undefined
  return isObject(unfolded) && isObject(beside) ? { ...unfolded, ...beside } : unfolded
}

/** The schema with its references kept, in the only form that the vendor takes: to `$defs`. */
function writeReferring(schema: Json): Json {
  if (!isObject(schema)) return schema
  const { definitions, ...rest } = schema
  const renamed = isObject(definitions) && rest['$defs'] === undefined ? { ...rest, $defs: definitions } : schema
  return writeReference(rewrite(renamed, writeReferring) ?? schema)
}

/** Beside a reference the vendor takes a description and a default, and refuses all other keywords. */
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

/** The schema with its nested schemas rewritten; undefined where one of them cannot be. */
function rewrite(
  schema: JsonObject,
  inside: (inner: Json) => Json | undefined,
  dropped: readonly string[] = [],
): JsonObject | undefined {
  const written: Record<string, Json | undefined> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (value === undefined || keyword === '$schema' || dropped.includes(keyword)) continue
    const rewritten = rewriteInner(keyword, value, inside)
    if (rewritten === undefined) return undefined
    written[keyword] = rewritten
  }
  return withoutConst(withoutLoneAllOf(written))
}

/** The vendor does not know `const`; an `enum` with one value means the same. */
function withoutConst(schema: JsonObject): JsonObject {
  const { const: only, ...rest } = schema
  if ((typeof only !== 'string' && typeof only !== 'number') || rest['enum'] !== undefined) return schema
  return { type: typeof only, ...rest, enum: [only] }
}

/** Nor does it know `allOf`, in which generators wrap a single reference to put a description beside it. */
function withoutLoneAllOf(schema: JsonObject): JsonObject {
  const { allOf, ...rest } = schema
  if (!Array.isArray(allOf) || allOf.length !== 1) return schema
  const only = (allOf as readonly Json[])[0]
  return isObject(only) ? { ...only, ...rest } : schema
}
