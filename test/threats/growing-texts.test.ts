import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isTold, startOwnGatewayOnSimulators, type OwnGateway } from '../support/own-gateway.ts'
import { says } from '../support/streams.ts'

// B-21: what a text costs grows as the text does. `long-texts.test.ts` tries long texts in every place.

const slowMs = 600_000

let gateway: OwnGateway

beforeAll(async () => {
  if (!isTold) return
  gateway = await startOwnGatewayOnSimulators()
}, slowMs)
afterAll(() => gateway?.close())

const little = 62_500
const more = 16
/** The most work for sixteen times as much text: linear work is far below, and quadratic work, 256 times, far above. */
const timesMax = 64
/** Less than this is too little to be compared. */
const workMsMin = 1

const asksOf = (text: string) =>
  [
    ['/v1/chat/completions', says(text)],
    ['/v1/messages', { ...says(text), model: 'gemini-2.5-flash', max_tokens: 5 }],
    ['/v1/responses', { model: 'gemini-2.5-flash', max_output_tokens: 5, input: text }],
    ['/v1/images/generations', { model: 'gpt-image-2', prompt: 'a hat', image: text }],
    ['/v1/videos/generations', { model: 'doubao-seedance-1-5-pro-251215', input: { prompt: `a${text}` } }],
    // Read, counted and split, but refused then: its pieces could not be joined.
    ['/v1/audio/speech', { model: 'tts-1', voice: 'alloy', response_format: 'flac', input: text }],
  ] as const

function asking([path, body]: readonly [string, object]) {
  const sent = JSON.stringify(body)
  return async () => (await gateway.post(path, sent)).bytes()
}

// Made for the patterns that texts are searched with: links, media types, numbers, flags in a prompt, steering words.
// Some of them grow when they are written, or are costly to store: what counts is that the work grows as the text does.
describe.skipIf(!isTold)('sixteen times as much text', () => {
  test.each([
    '1',
    'e1',
    '://a:',
    'data:',
    'data:image/png;base64,',
    'https://a@',
    '--a ',
    '--',
    '--ratio ',
    ' ',
    '\t ',
    '\n',
    '\r',
    '=',
    '\\',
    '"',
    '{"a":',
    '%41',
    '&#x41;',
    'sk-',
    '.',
    '\u0000',
    'é',
    '\u0301',
  ])(
    '%j repeated throughout the input does not cost quadratic work',
    async (pattern) => {
      const [few = [], many = []] = [1, more].map((times) => asksOf(pattern.repeat((times * little) / pattern.length)))
      for (const [index, ask] of few.entries()) {
        const { workMs } = await gateway.ordinaryWorkOf(asking(ask))
        const small = Math.max(workMsMin, workMs)
        const { workMs: large } = await gateway.workOf(asking(many[index] ?? ask), timesMax * small)
        expect({ path: ask[0], isLinear: large < timesMax * small || { small, large } }).toEqual({
          path: ask[0],
          isLinear: true,
        })
      }
    },
    slowMs,
  )
})
