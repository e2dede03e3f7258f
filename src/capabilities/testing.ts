import type { ChatTraits } from './chat.ts'

/** A chat model that nothing is special about, for tests of what is asked of one. */
export const plainModel: ChatTraits = {
  id: 'm',
  contextTokens: 100_000,
  outputTokensMax: 1_000,
  choicesMax: 8,
  reasoning: false,
  efforts: [],
  sells: () => true,
}
