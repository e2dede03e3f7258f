import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { rewriteInner } from '../inner-schemas.ts'

/** A schema without the patterns that vendors would refuse the whole request for; the model is told of them instead. */
export function withReadablePatterns(schema: JsonObject): JsonObject {
  const written: Record<string, Json | undefined> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    written[keyword] = value === undefined ? undefined : rewriteInner(keyword, value, inside)
  }
  return withReadableNames(withReadablePattern(written))
}

function inside(inner: Json): Json {
  return isObject(inner) ? withReadablePatterns(inner) : inner
}

/** Claude Code sends a pattern that only JavaScript reads. */
function withReadablePattern(schema: JsonObject): JsonObject {
  const { pattern, ...others } = schema
  if (typeof pattern !== 'string' || !mayBeRefused(pattern)) return schema
  return withRule(others, `{pattern: ${JSON.stringify(pattern)}}`)
}

/** Properties that are named by a pattern. Without it they count as additional ones, so those have to be allowed. */
function withReadableNames(schema: JsonObject): JsonObject {
  const { patternProperties, additionalProperties, ...others } = schema
  if (!isObject(patternProperties)) return schema
  const named = Object.entries(patternProperties)
  const refused = named.filter(([pattern]) => mayBeRefused(pattern))
  if (refused.length === 0) return schema
  const kept = named.filter(([pattern]) => !mayBeRefused(pattern))
  return withRule(
    {
      ...others,
      ...(kept.length > 0 && { patternProperties: Object.fromEntries(kept) }),
      ...(additionalProperties !== undefined && additionalProperties !== false && { additionalProperties }),
    },
    `{patternProperties: ${JSON.stringify(Object.fromEntries(refused))}}`,
  )
}

function withRule(schema: JsonObject, rule: string): JsonObject {
  const { description } = schema
  return { ...schema, description: typeof description === 'string' ? `${description}\n\n${rule}` : rule }
}

// Both begin with whole pairs of backslashes, because a bracket or a letter behind such a pair is not escaped.
const escapeUnknown = /(?<!\\)(?:\\\\)*\\(?:[ceg-mo-qyzCE-RT-VXY]|u\{)/
/** An empty set, a set in a set, or a range that begins or ends with a class such as `\w`. */
const oddSet = /(?<!\\)(?:\\\\)*\[\^?(?:\]|(?:\\[^]|[^\\[\]])*?(?:\[|\\[dDsSwW]-[^\]]|(?:\\[^]|[^\\[\]])-\\[dDsSwW]))/
const namedGroup = /\(\?<[^=!]/
// Beyond any real pattern. A million characters would take the expressions above most of a second.
const patternCharactersMax = 1_000

/**
 * Whether a pattern has what vendors' own regular expressions refuse. OpenAI and Zhipu check it by Python's; for
 * DeepSeek a bare bracket in a set begins another set. What is too long to be examined is not sent as a pattern either.
 */
function mayBeRefused(pattern: string): boolean {
  if (pattern.length > patternCharactersMax) return true
  return [escapeUnknown, oddSet, namedGroup].some((refused) => refused.test(pattern))
}
