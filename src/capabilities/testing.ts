import type { ChatTraits } from './chat.ts'

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
