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

/** Estimates the tokens of a text by tokenx's rule of thumb, without a real tokenizer. */
export function estimateTokens(text: string): number {
  return estimateTokenCount(text, { languageConfigs })
}
