import type { JsonObject } from '../../base/json.ts'
import type { ChatAsk, ChatTraits } from '../../capabilities/chat.ts'
import { responsesChat } from './chat.ts'

/** What the tests of this protocol start from: a model that takes everything. */
export const traits: ChatTraits = {
  id: 'm',
  contextTokens: 100_000,
  outputTokensMax: 1_000,
  choicesMax: 8,
  reasoning: false,
  efforts: [],
  sells: () => true,
}
export const name = { requestId: 'req_0123', createdAt: 1_700_000_000_000, elapsedMs: () => 2_500 }

export function askOf(body: JsonObject, more: Partial<ChatTraits> = {}, bodyBytes = 1_000): ChatAsk {
  const asked = { body: { model: 'm', input: 'Hi', ...body }, files: [], bodyBytes, header: () => null }
  return responsesChat.readAsk(asked, () => ({ ...traits, ...more }))
}
