import type { JsonObject } from '../../base/json.ts'
import type { ChatAsk, ChatTraits } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { responsesChat } from './chat.ts'

export const name = { requestId: 'req_0123', createdAt: 1_700_000_000_000, elapsedMs: () => 2_500 }

export function askOf(body: JsonObject, more: Partial<ChatTraits> = {}, bodyBytes = 1_000): ChatAsk {
  const asked = { body: { model: 'm', input: 'Hi', ...body }, files: [], bodyBytes, header: () => null }
  return responsesChat.readAsk(asked, () => ({ ...plainModel, ...more }))
}

/** A reasoning model, as clients and as its vendor know it. */
export const thinker = { reasoning: true, efforts: ['none', 'low', 'medium', 'high'] }

export const target = {
  ...thinker,
  upstreamModel: 'theirs',
  outputTokensMax: 8_000,
  namespaced: (label: string) => `mine/${label}`,
}
