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
  if (typeof pattern !== 'string' || !isJavaScriptAlone(pattern)) return schema
  const rule = `{pattern: ${JSON.stringify(pattern)}}`
  return { ...others, description: typeof description === 'string' ? `${description}\n\n${rule}` : rule }
}

const escapes = /\\(?:u\{|[^])/g
const escapesUnknown: ReadonlySet<string> = new Set(['\\p', '\\P', '\\c', '\\k', '\\u{'])
const namedGroup = /\(\?<[^=!]/

/** Whether a pattern has what Python's regular expressions lack, by which OpenAI, DeepSeek and Zhipu check it. */
function isJavaScriptAlone(pattern: string): boolean {
  return namedGroup.test(pattern) || (pattern.match(escapes) ?? []).some((escape) => escapesUnknown.has(escape))
}
