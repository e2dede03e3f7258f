import { isGiven, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import type { Tool, ToolChoice } from '../../capabilities/conversation.ts'
import { itemsIn, objectIn, objectsIn, textIn } from '../loose.ts'
import { noParameters } from './strict-schema.ts'

/**
 * `functions` and `function_call`, which tools replaced in 2023. Vendors of this protocol judge them themselves. For
 * other vendors they become tools, and the client is answered in the old form: one call, without an id.
 */
export function isLegacy({ native }: Pick<ChatAsk, 'native'>): boolean {
  return itemsIn(native['functions']).length > 0 && itemsIn(native['tools']).length === 0
}

export function readFunctions(native: JsonObject): Tool[] {
  return objectsIn(native['functions']).map(({ name, description, parameters }) => ({
    name: textIn(name),
    schema: isGiven(parameters) ? objectIn(parameters) : noParameters(false),
    ...(typeof description === 'string' && { description }),
  }))
}

export function readFunctionChoice(choice: Json | undefined): ToolChoice | undefined {
  if (choice === 'auto' || choice === 'none') return choice
  const name = textIn(objectIn(choice)['name'])
  return name === '' ? undefined : { name }
}

/** A message in the old form, which has room only for the first call. */
export function writeFunctionCall(message: JsonObject): JsonObject {
  const { tool_calls: calls, ...rest } = message
  const [call] = objectsIn(calls)
  return call === undefined ? rest : { ...rest, function_call: objectIn(call['function']) }
}

export const legacyFinish = 'function_call'
