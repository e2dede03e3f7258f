import type { JsonObject } from '../../base/json.ts'
import { chatAsk, type ChatAsk } from '../../capabilities/chat.ts'
import type { AssistantBlock, Conversation, Tool, Turn, UserBlock } from '../../capabilities/conversation.ts'
import { plainConversation, plainModel } from '../../capabilities/testing.ts'
import { writeAsk, type AskTarget } from './write-ask.ts'

/** A model of which only the name matters to the tests of answers. */
const traits = { ...plainModel, id: 'ours', contextTokens: 1_000, outputTokensMax: 100, choicesMax: 1 }
export const name = { requestId: 'req_1', createdAt: 0, elapsedMs: () => 0 }

/** A request that has been read already. */
export function askOf(native: JsonObject, { stream = true } = {}): ChatAsk {
  const facts = { model: 'ours', stream, usageShown: true, choices: 1, outputTokensMax: 100 } as const
  return chatAsk({ ...facts, protocol: 'anthropic', inputTokensMax: 100, searchesMax: 0, native, headers: {} }, traits)
}

/** The efforts of a model that thinks by budget, and of one that thinks by effort. */
export const oldLadder = ['none', 'minimal', 'low', 'medium', 'high']
export const newLadder = [...oldLadder, 'xhigh', 'max']
/** The efforts of a model that always thinks. */
export const alwaysLadder = newLadder.slice(1)

export const target: AskTarget = {
  upstreamModel: 'theirs',
  stream: false,
  efforts: oldLadder,
  rules: [],
  outputTokensMax: 64_000,
  searchesMax: 5,
  namespaced: (label) => `mine/${label}`,
}

export const said = (text: string) => ({ kind: 'text' as const, text })
export const user = (...blocks: UserBlock[]): Turn => ({ role: 'user', blocks })
export const assistant = (...blocks: AssistantBlock[]): Turn => ({ role: 'assistant', blocks })
export const tool: Tool = { name: 'f', schema: { type: 'object', properties: {} } }

/** The body that is written for the vendor. */
export function write(fields: Partial<Conversation> = {}, more: Partial<AskTarget> = {}): JsonObject {
  return writeAsk({ ...plainConversation, ...fields }, { ...target, ...more })
}
