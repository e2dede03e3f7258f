import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { ModelTraits } from '../../capabilities/limits.ts'
import { openaiEmbeddings } from './embeddings.ts'
import { readAsk as readImagesAsk } from './images-ask.ts'
import { openaiSpeech } from './speech.ts'

// A hold is computed from these bounds, and usage beyond it is our loss.

const traits: ModelTraits = {
  id: 'm',
  contextTokens: 100_000,
  outputTokensMax: 1_000,
  choicesMax: 1,
  reasoning: false,
  efforts: [],
  images: { sizes: [], qualities: ['high'], countMax: 1, alwaysBytes: true, references: { min: 0, max: 0 } },
  speech: { voices: [], formats: ['mp3'], instructions: true, charactersMax: 100 },
  embeddings: { dimensions: [], dimensionsDefault: 8, inputTokensMax: 1_000, batchMax: 2 },
  sells: (unit) => unit !== 'character',
  sellsImage: () => true,
  sellsVideo: () => true,
}
const asked = (body: JsonObject) => ({ body: { model: 'm', ...body }, files: [], bodyBytes: 0, header: () => null })
const speechBound = (body: JsonObject) => openaiSpeech.readAsk(asked(body), () => traits).bound
const sentence = 'A word after another. '

test('the prompt of an image counts at least one token per byte', () => {
  const { bound } = readImagesAsk(
    asked({ prompt: '狐'.repeat(100) }),
    () => traits,
    () => false,
  )
  expect(bound.input).toBeGreaterThanOrEqual(300)
})

test('speech at a quarter of the speed may take four times as many tokens', () => {
  const { output: usual = 0 } = speechBound({ input: sentence.repeat(20) })
  const { output: slow = 0 } = speechBound({ input: sentence.repeat(20), speed: 0.25 })
  expect(slow).toBeGreaterThan(3 * usual)
})

test('instructions are read anew with every piece of a long text', () => {
  const { input = 0, request = 0 } = speechBound({ input: sentence.repeat(20), instructions: 'i'.repeat(5_000) })
  expect(request).toBeGreaterThanOrEqual(5)
  expect(input).toBeGreaterThanOrEqual(sentence.length * 20 + request * 5_000)
})

test('every batch of a list of embeddings counts as a request', () => {
  const { bound } = openaiEmbeddings.readAsk(asked({ input: ['a', 'b', 'c', 'd', 'e'] }), () => traits)
  expect(bound.request).toBe(3)
})
