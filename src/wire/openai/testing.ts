import type { JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { openaiChat } from './chat.ts'
import type { TranslationTarget } from './write-ask.ts'

/** A vendor without quirks, for the tests of translation. */
export const target: TranslationTarget = {
  upstreamModel: 'theirs',
  reasoning: false,
  efforts: ['low', 'medium', 'high'],
  pastReasoning: 'ignored',
  takesDeveloper: true,
  leftOut: [],
  messageLeftOut: [],
  seedField: 'seed',
  callIds: 'any',
  instructions: 'anywhere',
  afterToolResults: 'anybody',
  takesHints: true,
  takesSchema: true,
  thinkingSwitch: 'effort',
  outputCap: 'max_tokens',
  usageInStream: 'asked',
  storesByDefault: false,
  metadata: 'any',
  outputTokensMax: 1_000,
  namespaced: (label) => label,
}
export const name = { requestId: 'req_0123', createdAt: 1_700_000_000_000, elapsedMs: () => 2_500 }

export function askOf(body: JsonObject): ChatAsk {
  return openaiChat.readAsk({ body, files: [], bodyBytes: 1_000, header: () => null }, () => plainModel)
}

export const user = { role: 'user', content: 'Hi' }
export const plainAsk = askOf({ model: 'm', messages: [user] })
export const streamAsk = askOf({ model: 'm', messages: [user], stream: true, stream_options: { include_usage: true } })
