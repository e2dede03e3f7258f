import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { freshInput, readUsage } from './read-usage.ts'

const none = { input: 0, cachedInput: 0, audioInput: 0, output: 0, imageOutput: 0, audioOutput: 0, reasoning: 0 }
const audio = (tokenCount: number) => [
  { modality: 'TEXT', tokenCount: 1 },
  { modality: 'AUDIO', tokenCount },
]

test.each([
  ['text', { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 7 }, { input: 5, output: 2 }],
  [
    'reasoning counts as output',
    { promptTokenCount: 29, candidatesTokenCount: 15, thoughtsTokenCount: 1801, totalTokenCount: 1845 },
    { input: 29, output: 1816, reasoning: 1801 },
  ],
  [
    'reasoning without an answer',
    { promptTokenCount: 5, thoughtsTokenCount: 50, totalTokenCount: 55 },
    { input: 5, output: 50, reasoning: 50 },
  ],
  ['cached input', { promptTokenCount: 100, cachedContentTokenCount: 80 }, { input: 20, cachedInput: 80 }],
  [
    'input that tools added',
    { promptTokenCount: 151, candidatesTokenCount: 1089, toolUsePromptTokenCount: 18329, thoughtsTokenCount: 1120 },
    { input: 18480, output: 2209, reasoning: 1120 },
  ],
  ['audio input', { promptTokenCount: 101, promptTokensDetails: audio(100) }, { input: 1, audioInput: 100 }],
  [
    'cached audio',
    {
      promptTokenCount: 101,
      cachedContentTokenCount: 61,
      promptTokensDetails: audio(100),
      cacheTokensDetails: audio(60),
    },
    { cachedInput: 61, audioInput: 40 },
  ],
  [
    'cached audio beside text that was not cached',
    {
      promptTokenCount: 200,
      cachedContentTokenCount: 60,
      promptTokensDetails: audio(100),
      cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 60 }],
    },
    { input: 100, cachedInput: 60, audioInput: 40 },
  ],
  [
    'audio that tools added',
    {
      promptTokenCount: 101,
      promptTokensDetails: audio(100),
      toolUsePromptTokenCount: 31,
      toolUsePromptTokensDetails: audio(30),
    },
    { input: 2, audioInput: 130 },
  ],
  [
    'image and audio output',
    {
      promptTokenCount: 1,
      candidatesTokenCount: 1300,
      candidatesTokensDetails: [
        { modality: 'IMAGE', tokenCount: 1290 },
        { modality: 'AUDIO', tokenCount: 4 },
      ],
    },
    { input: 1, output: 6, imageOutput: 1290, audioOutput: 4 },
  ],
  ['a negative count', { promptTokenCount: 5, candidatesTokenCount: -5 }, { input: 5 }],
])("the vendor's counts become ours: %s", (_, written, counts) => {
  expect(readUsage(written)).toEqual({ ...none, ...counts })
})

test.each([
  ['no details', [], { imageOutput: 1300 }],
  ['details without counts', [{ modality: 'IMAGE' }], { imageOutput: 1300 }],
  ['details of no kind', [{ modality: 'MODALITY_UNSPECIFIED', tokenCount: 1290 }], { imageOutput: 1300 }],
  ['details of the text alone', [{ modality: 'TEXT', tokenCount: 10 }], { output: 10, imageOutput: 1290 }],
  ['details of the image alone', [{ modality: 'IMAGE', tokenCount: 1290 }], { output: 10, imageOutput: 1290 }],
])('the tokens of an image are told from those of text by %s', (_, candidatesTokensDetails, counts) => {
  const written = { promptTokenCount: 1, candidatesTokenCount: 1300, candidatesTokensDetails }
  expect(readUsage(written, 'IMAGE')).toEqual({ ...none, input: 1, ...counts })
})

test.each([[undefined], [null], [{}], [[]], ['x'], [{ promptTokenCount: '5' }]])('%j gives no usage', (written) => {
  expect(readUsage(written)).toBeUndefined()
})

test('the parts of the usage add up to the totals and are never negative', () => {
  const count = fc.nat(1_000)
  const details = fc.array(fc.record({ modality: fc.constantFrom('TEXT', 'AUDIO', 'IMAGE'), tokenCount: count }))
  const written = fc.record({
    promptTokenCount: count,
    candidatesTokenCount: count,
    thoughtsTokenCount: count,
    toolUsePromptTokenCount: count,
    cachedContentTokenCount: count,
    promptTokensDetails: details,
    cacheTokensDetails: details,
    candidatesTokensDetails: details,
  })
  fc.assert(
    fc.property(written, (given) => {
      const usage = readUsage(given)
      const {
        input = -1,
        cachedInput = -1,
        audioInput = -1,
        output = -1,
        imageOutput = -1,
        audioOutput = -1,
      } = usage ?? {}
      expect(input + cachedInput + audioInput).toBe(given.promptTokenCount + given.toolUsePromptTokenCount)
      expect(output + imageOutput + audioOutput).toBe(given.candidatesTokenCount + given.thoughtsTokenCount)
      expect(Math.min(input, cachedInput, audioInput, output, imageOutput, audioOutput)).toBeGreaterThanOrEqual(0)
    }),
  )
})

const images = (tokenCount: number) => [
  { modality: 'TEXT', tokenCount: 9 },
  { modality: 'IMAGE', tokenCount },
]

test('the images of a prompt are counted without those that were cached', () => {
  expect(freshInput({ promptTokensDetails: images(516) }, 'IMAGE')).toBe(516)
  expect(freshInput({ promptTokensDetails: images(516), cacheTokensDetails: images(258) }, 'IMAGE')).toBe(258)
  expect(freshInput({ promptTokensDetails: images(0), cacheTokensDetails: images(258) }, 'IMAGE')).toBe(0)
})

test('output that the vendor does not tell apart consists of what was asked for', () => {
  const counted = { promptTokenCount: 5, candidatesTokenCount: 9, thoughtsTokenCount: 2 }
  expect(readUsage(counted)).toMatchObject({ output: 11, audioOutput: 0, imageOutput: 0 })
  expect(readUsage(counted, 'AUDIO')).toMatchObject({ output: 2, audioOutput: 9, imageOutput: 0 })
  expect(readUsage(counted, 'IMAGE')).toMatchObject({ output: 2, audioOutput: 0, imageOutput: 9 })
  const told = { ...counted, candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: 9 }] }
  expect(readUsage(told, 'AUDIO')).toMatchObject({ output: 11, audioOutput: 0 })
})

test('output without a count of its own is what the total leaves for it, or unknown', () => {
  expect(readUsage({ promptTokenCount: 5, totalTokenCount: 16, thoughtsTokenCount: 2 })).toMatchObject({ output: 11 })
  expect(readUsage({ promptTokenCount: 5, totalTokenCount: 16 }, 'AUDIO')).toMatchObject({ audioOutput: 11 })
  expect(readUsage({ promptTokenCount: 5, totalTokenCount: 5 }, 'AUDIO')).toBeUndefined()
  expect(readUsage({ promptTokenCount: 5, candidatesTokenCount: 0 }, 'AUDIO')).toMatchObject({ audioOutput: 0 })
  expect(readUsage({ totalTokenCount: 0 }, 'AUDIO')).toMatchObject({ audioOutput: 0 })
  // Nothing tells how much of this is the prompt.
  expect(readUsage({ totalTokenCount: 16 })).toEqual(expect.objectContaining({ output: 0 }))
  expect(readUsage({ totalTokenCount: 16 })).not.toHaveProperty('input')
})
