import { estimateTokenCount } from 'tokenx'

// For a script that tokenx does not know it assumes seven letters a token. These rates are measured with o200k_base.
const languageConfigs = [
  { pattern: /[\p{Script=Ethiopic}\p{Script=Lao}\p{Script=Tibetan}]/u, averageCharsPerToken: 0.6 },
  { pattern: /[\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Sinhala}]/u, averageCharsPerToken: 1.8 },
  { pattern: /\p{Script=Thai}/u, averageCharsPerToken: 2.3 },
  {
    pattern:
      /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Bengali}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Malayalam}]/u,
    averageCharsPerToken: 4,
  },
]

// A megabyte takes up to a quarter of a second, in which nobody else is served: of longer texts only this much is
// counted.
const countedMax = 128 * 1024
const pieceLength = 1024

/** Estimates the tokens of texts by tokenx's rule of thumb, without a real tokenizer. */
export function estimateTokens(texts: readonly string[]): number {
  const length = texts.reduce((sum, text) => sum + text.length, 0)
  return length > countedMax ? extrapolate(texts.join('\n')) : texts.reduce((sum, text) => sum + count(text), 0)
}

const estimates = new WeakMap<object, number>()

/**
 * The estimate for a request or a reply, which is made once. It takes milliseconds and counts other pieces each time,
 * but a client is shown the number that is charged.
 */
export function estimateOnce(of: object, estimate: () => number): number {
  const made = estimates.get(of) ?? estimate()
  estimates.set(of, made)
  return made
}

/** Counts pieces at random places, because a client that knew the places could fill them with what counts little. */
function extrapolate(text: string): number {
  const pieces = countedMax / pieceLength
  const stride = (text.length - pieceLength) / pieces
  let tokens = 0
  for (let piece = 0; piece < pieces; piece++) {
    const start = Math.floor((piece + Math.random()) * stride)
    tokens += count(text.slice(start, start + pieceLength))
  }
  return Math.round((tokens / countedMax) * text.length)
}

function count(text: string): number {
  // tokenx looks for each of them in every word, so those that are nowhere in the text are left out: usually all.
  return estimateTokenCount(text, { languageConfigs: languageConfigs.filter(({ pattern }) => pattern.test(text)) })
}
