import { isObject, type JsonObject } from '../../base/json.ts'
import { objectsIn } from '../loose.ts'

/**
 * A delta that goes on with what the last one was a part of, and adds nothing to it. OpenAI's client for Go takes a
 * text or a call for finished at the first chunk without a piece of it, and gives its user what it has by then: behind
 * an empty delta, that would be a call with half of its arguments.
 */
export function silentAfter(last: JsonObject): JsonObject {
  const [call] = objectsIn(last['tool_calls'])
  if (call !== undefined) {
    const nothing = isObject(call['custom']) ? { custom: { input: '' } } : { function: { arguments: '' } }
    return { tool_calls: [{ index: call['index'] ?? 0, ...nothing }] }
  }
  if (typeof last['content'] === 'string') return { content: '' }
  return typeof last['refusal'] === 'string' ? { refusal: '' } : {}
}
