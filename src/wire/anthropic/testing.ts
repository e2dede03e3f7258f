import type { JsonObject } from '../../base/json.ts'
import { chatAsk, type ChatAsk } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'

/** A model of which only the name matters to the tests of answers. */
const traits = { ...plainModel, id: 'ours', contextTokens: 1_000, outputTokensMax: 100, choicesMax: 1 }
export const name = { requestId: 'req_1', createdAt: 0, elapsedMs: () => 0 }

/** A request that has been read already. */
export function askOf(native: JsonObject, { stream = true } = {}): ChatAsk {
  const facts = { model: 'ours', stream, usageShown: true, choices: 1, outputTokensMax: 100 } as const
  return chatAsk({ ...facts, protocol: 'anthropic', inputTokensMax: 100, searchesMax: 0, native, headers: {} }, traits)
}
