/** A model as the simulated vendor sells it: plain facts, given by whoever starts the sandbox. */
export type SandboxModel = {
  vendor: string
  /** The vendor's own spelling of the id: what arrives in `model`. */
  model: string
  /** What it is sold for: chat, embeddings, images, edits, speech, video. Absent: chat. */
  capabilities?: readonly string[]
  /** Thinks before it answers. At OpenAI that also means refusing temperature, max_tokens, stop and the like. */
  reasoning: boolean
  /** The `reasoning_effort` values it takes; any other is the vendor's 400. */
  efforts: readonly string[]
  /** Anthropic: the `thinking.type` values it takes. Absent: all of them. */
  thinkingTypes?: readonly string[]
  /** Anthropic: false where the model refuses to go on from an assistant message at the end. */
  prefill?: boolean
  contextTokens: number
  outputTokensMax: number
  prices: SandboxPrices
}

export function isSoldFor({ capabilities = ['chat'] }: SandboxModel, ...wanted: readonly string[]): boolean {
  return wanted.some((capability) => capabilities.includes(capability))
}

/** Integer pico-dollars per unit: what the vendor charges. Without a cached price, cached input costs as input. */
export type SandboxPrices = TokenPrices & {
  /** Once per answered request. */
  request?: bigint
  /** Once per search that the vendor itself makes. */
  webSearch?: bigint
  /** Per character spoken, as the vendor counts them. */
  character?: bigint
  /** Per picture: by `size/quality`, by `size`, or `default`. */
  perImage?: Readonly<Record<string, bigint>>
  /** Per second of video, and per token where the vendor counts those. */
  videoSecond?: VideoRates
  /** Per film, where the vendor sells those as a whole: by resolution and length, such as `768p/6s`. */
  perVideo?: Readonly<Record<string, bigint>>
  videoToken?: VideoRates
  /** Where the request brings video of its own. Absent: no other price. */
  videoTokenWithInput?: VideoRates
  /** The whole request costs the tier with the highest threshold that its input, cached part included, exceeds. */
  tiers?: readonly (TokenPrices & { aboveInputTokens: number })[]
}

/**
 * Writing to the prompt cache costs as input where it has no price, for an hour as for five minutes; so do tokens of
 * pictures and sound as those of text.
 */
type TokenPrices = {
  input: bigint
  cachedInput?: bigint
  cacheWrite5m?: bigint
  cacheWrite1h?: bigint
  output: bigint
  /** All of the output, where the model thought. */
  thinkingOutput?: bigint
  imageInput?: bigint
  audioInput?: bigint
  imageOutput?: bigint
  audioOutput?: bigint
}

/** By resolution in small letters, such as `720p` (Kling: by mode), or `default`; with and without sound where that differs. */
export type VideoRates = Readonly<Record<string, bigint | { readonly sound: bigint; readonly silent: bigint }>>
