import type { ChatTraits } from './chat.ts'
import type { Conversation } from './conversation.ts'

/** A chat model without any special traits, for tests of the rules of a request. */
export const plainModel: ChatTraits = {
  id: 'm',
  contextTokens: 100_000,
  outputTokensMax: 1_000,
  choicesMax: 8,
  reasoning: false,
  efforts: [],
  sells: () => true,
}

/** A conversation of one message, for tests of what is written for a vendor. */
export const plainConversation: Conversation = {
  system: [],
  turns: [{ role: 'user', blocks: [{ kind: 'text', text: 'Hi' }] }],
  tools: [],
  hostedTools: [],
  stop: [],
}
