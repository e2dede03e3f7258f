import { estimateTokenCount } from 'tokenx'

// The rule of thumb takes seven letters of a script that it does not know for a token. Measured with o200k_base.
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

/** Tokens of a text, by a tokenizer's rule of thumb. */
export function countWords(text: string): number {
  return estimateTokenCount(text, { languageConfigs })
}
