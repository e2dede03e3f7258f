import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { rewriteInner } from '../inner-schemas.ts'
import { writeToolSchema } from '../tool-schema.ts'
import { withReadablePatterns } from './readable-patterns.ts'

/**
 * A tool's schema as OpenAI takes it. Many servers describe a tool without arguments as a mere `{"type": "object"}`, a
 * list without its `items`, and alternatives by a union at the top. Other vendors take them; OpenAI refuses the whole
 * request.
 */
export function writeParameters(schema: JsonObject): JsonObject {
  const { $schema: _, ...rest } = writeToolSchema(accepted(withReadablePatterns(schema)))
  return { ...rest, ...(rest['properties'] === undefined && { properties: {} }) }
}

function accepted(schema: JsonObject): JsonObject {
  const written: Record<string, Json | undefined> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    written[keyword] = value === undefined ? undefined : rewriteInner(keyword, value, inside)
  }
  return withItems(written)
}

function inside(inner: Json): Json {
  return isObject(inner) ? accepted(inner) : inner
}

function withItems(schema: JsonObject): JsonObject {
  const { type } = schema
  const isList = type === 'array' || (Array.isArray(type) && type.includes('array'))
  return isList && schema['items'] === undefined ? { ...schema, items: {} } : schema
}
