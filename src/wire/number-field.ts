import { asDouble, type Json } from '../base/json.ts'
import type { Conversation } from '../capabilities/conversation.ts'

type NumberField = 'temperature' | 'topP' | 'topK' | 'seed' | 'presencePenalty' | 'frequencyPenalty'

/** The field, where the client gave a number. One with more digits than a double holds becomes the nearest double. */
export function numberField(field: NumberField, given: Json | undefined): Pick<Conversation, NumberField> {
  const value = asDouble(given)
  return typeof value === 'number' ? { [field]: value } : {}
}
