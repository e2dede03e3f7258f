import { asDouble, type Json, type JsonObject } from '../base/json.ts'
import type { Conversation } from '../capabilities/conversation.ts'

type NumberField = 'temperature' | 'topP' | 'topK' | 'seed' | 'presencePenalty' | 'frequencyPenalty'

/** The field, where the client gave a number. One with more digits than a double holds becomes the nearest double. */
export function numberField(field: NumberField, given: Json | undefined): Pick<Conversation, NumberField> {
  const value = asDouble(given)
  return typeof value === 'number' ? { [field]: value } : {}
}

/** `0.70000000000000000001` is a temperature too: it passes on as written, and is checked as the nearest double. */
export function withDoubles(body: JsonObject, fields: readonly string[]): JsonObject {
  if (!fields.some((field) => typeof body[field] === 'object')) return body
  return { ...body, ...Object.fromEntries(fields.map((field) => [field, asDouble(body[field])])) }
}
