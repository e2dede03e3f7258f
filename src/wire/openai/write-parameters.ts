import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { rewriteInner } from '../inner-schemas.ts'

/**
 * A tool's schema as OpenAI takes it. Many servers describe a tool without arguments as a mere `{"type": "object"}`,
 * and a list without its `items`. Other vendors take both; OpenAI refuses the whole request.
 */
export function writeParameters(schema: JsonObject): JsonObject {
  const { $schema: _, ...rest } = accepted(schema)
  return {
    ...rest,
    ...(rest['type'] === undefined && { type: 'object' }),
    ...(rest['properties'] === undefined && { properties: {} }),
  }
}

function accepted(schema: JsonObject): JsonObject {
  const written: Record<string, Json | undefined> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    written[keyword] = value === undefined ? undefined : rewriteInner(keyword, value, inside)
  }
  return withReadablePattern(withItems(written))
}

function inside(inner: Json): Json {
  return isObject(inner) ? accepted(inner) : inner
}

function withItems(schema: JsonObject): JsonObject {
  const { type } = schema
  const isList = type === 'array' || (Array.isArray(type) && type.includes('array'))
  return isList && schema['items'] === undefined ? { ...schema, items: {} } : schema
}

/** A pattern that vendors would refuse the whole request for is told to the model instead; Claude Code sends one. */
function withReadablePattern(schema: JsonObject): JsonObject {
  const { pattern, description, ...others } = schema
  if (typeof pattern !== 'string' || !mayBeRefused(pattern)) return schema
  const rule = `{pattern: ${JSON.stringify(pattern)}}`
  return { ...others, description: typeof description === 'string' ? `${description}\n\n${rule}` : rule }
}

// Both begin with whole pairs of backslashes, because a bracket or a letter behind such a pair is not escaped.
const escapeUnknown = /(?<!\\)(?:\\\\)*\\(?:[ceg-mo-qyzCE-RT-VXY]|u\{)/
/** An empty set, a set in a set, or a range that begins or ends with a class such as `\w`. */
const oddSet = /(?<!\\)(?:\\\\)*\[\^?(?:\]|(?:\\[^]|[^\\[\]])*?(?:\[|\\[dDsSwW]-[^\]]|(?:\\[^]|[^\\[\]])-\\[dDsSwW]))/
const namedGroup = /\(\?<[^=!]/
// Beyond any real pattern. A million characters would take the expressions above most of a second.
const patternCharactersMax = 1_000

/**
 * Whether a pattern has what vendors' own regular expressions refuse. OpenAI and Zhipu check it by Python's; for DeepSeek
 * a bare bracket in a set begins another set. What is too long to be examined is not sent as a pattern either.
 */
function mayBeRefused(pattern: string): boolean {
  if (pattern.length > patternCharactersMax) return true
  return [escapeUnknown, oddSet, namedGroup].some((refused) => refused.test(pattern))
}
