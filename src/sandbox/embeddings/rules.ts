import { byPattern } from '../model.ts'

/**
 * What an embedding model accepts, according to its vendor. The simulator keeps its own list, so that a mistake in the
 * catalogue is noticed.
 */
export type EmbeddingRules = {
  /** The longest vector it has. */
  readonly dimensionsMax: number
  readonly dimensionsDefault: number
  /** The lengths it offers: a list, any up to the longest, or no choice. */
  readonly dimensions: readonly number[] | 'any' | 'fixed'
  readonly inputsMax: number
  /** The limit for one input. */
  readonly tokensMax: number
  /** The limit for all inputs of a call. */
  readonly batchTokensMax: number
  readonly takesTokens: boolean
  readonly takesBase64: boolean
}

const fixed = (dimensions: number) =>
  ({ dimensionsMax: dimensions, dimensionsDefault: dimensions, dimensions: 'fixed' }) as const
const upTo = (dimensions: number) =>
  ({ dimensionsMax: dimensions, dimensionsDefault: dimensions, dimensions: 'any' }) as const
const listed = (dimensionsDefault: number, dimensions: readonly [number, ...number[]]) => ({
  dimensionsMax: Math.max(...dimensions),
  dimensionsDefault,
  dimensions,
})

const openai = { inputsMax: 2048, tokensMax: 8192, batchTokensMax: 300_000, takesTokens: true, takesBase64: true }
const dashscope = { ...openai, inputsMax: 10, batchTokensMax: Infinity, takesTokens: false, takesBase64: false }
const voyage = { ...openai, inputsMax: 1000, tokensMax: 32_000, batchTokensMax: 120_000, takesTokens: false }
const voyageSizes = listed(1024, [256, 512, 1024, 2048])
const cohere = { ...openai, inputsMax: 96, tokensMax: 128_000, batchTokensMax: Infinity, takesTokens: false }

export const rulesFor = byPattern<EmbeddingRules>(
  [
    [/text-embedding-3-small/, { ...openai, ...upTo(1536) }],
    [/text-embedding-3-large/, { ...openai, ...upTo(3072) }],
    [/text-embedding-ada/, { ...openai, ...fixed(1536) }],
    [/^text-embedding-v4/, { ...dashscope, ...listed(1024, [2048, 1536, 1024, 768, 512, 256, 128, 64]) }],
    [/^text-embedding-v3/, { ...dashscope, ...listed(1024, [1024, 768, 512, 256, 128, 64]) }],
    [/^text-embedding-v[12]/, { ...dashscope, ...fixed(1536), inputsMax: 25, tokensMax: 2048 }],
    [/^doubao-embedding-large-text-250515/, { ...openai, ...listed(2048, [2048, 1024, 512, 256]), ...ark(4096) }],
    [/^doubao-embedding-large/, { ...openai, ...fixed(4096), ...ark(4096) }],
    [/^doubao-embedding/, { ...openai, ...listed(2560, [2560, 2048, 1024, 512]), ...ark(4096) }],
    [/^voyage-.*lite/, { ...voyage, ...voyageSizes, batchTokensMax: 1_000_000 }],
    [/^voyage-(3\.5|4)$/, { ...voyage, ...voyageSizes, batchTokensMax: 320_000 }],
    [/^voyage-/, { ...voyage, ...voyageSizes }],
    [/^embed-v4/, { ...cohere, ...listed(1536, [256, 512, 1024, 1536]) }],
    [/^embed-.*light/, { ...cohere, ...fixed(384), tokensMax: 512 }],
    [/^embed-/, { ...cohere, ...fixed(1024), tokensMax: 512 }],
    [/^codestral-embed/, { ...openai, ...upTo(3072), batchTokensMax: 16_384, takesTokens: false }],
    [/^mistral-embed/, { ...openai, ...fixed(1024), batchTokensMax: 16_384, takesTokens: false }],
    [/gemini-embedding|text-embedding-004/, { ...openai, ...upTo(3072), inputsMax: 100, tokensMax: 2048 }],
    [/bge-/, { ...openai, ...fixed(1024), inputsMax: 32 }],
  ],
  { ...openai, ...upTo(4096), dimensionsDefault: 1024 },
)

function ark(tokensMax: number) {
  return { inputsMax: 256, tokensMax, batchTokensMax: Infinity, takesTokens: false }
}

export function hasDimensions(
  { dimensions, dimensionsMax, dimensionsDefault }: EmbeddingRules,
  asked: number,
): boolean {
  if (dimensions === 'fixed') return asked === dimensionsDefault
  if (dimensions === 'any') return Number.isInteger(asked) && asked >= 1 && asked <= dimensionsMax
  return dimensions.includes(asked)
}
