/** A model as the simulated vendor sells it. The caller of `startSandbox` gives these facts as plain data. */
export type SandboxModel = {
  vendor: string
  /** The vendor's own spelling of the id, which arrives in `model`. */
  model: string
  /** What it is sold for: chat, embeddings, images, edits, speech, video. Absent: chat. */
  capabilities?: readonly string[]
  /**
   * Reasons before it answers. At OpenAI such a model also refuses temperature, max_tokens, stop and similar fields.
   */
  reasoning: boolean
  /** The `reasoning_effort` values it takes; the vendor refuses any other with 400. */
  efforts: readonly string[]
  /** Anthropic: the `thinking.type` values it takes. Absent: all of them. */
  thinkingTypes?: readonly string[]
  /** Anthropic: false where the model refuses a temperature, `top_p` or `top_k` that is not the default. */
  sampling?: boolean
  /** Anthropic: false where the model refuses a `tool_choice` that forces a call. */
  forcedCalls?: boolean
  /** Anthropic: false where the model refuses to continue from an assistant message at the end. */
  prefill?: boolean
  /** Anthropic: false where the model refuses instructions among the messages. */
  asides?: boolean
  contextTokens: number
  outputTokensMax: number
  prices: SandboxPrices
}

export function isSoldFor({ capabilities = ['chat'] }: SandboxModel, ...wanted: readonly string[]): boolean {
  return wanted.some((capability) => capabilities.includes(capability))
}

/** `reasoning` marks models that refuse what OpenAI's reasoning models refuse. Others that reason have efforts. */
export function isThinker({ reasoning, efforts }: SandboxModel): boolean {
  return reasoning || efforts.length > 0
}

/** Facts about models by their ids: those of the first pattern that matches, or else those of all other models. */
export const byPattern =
  <Facts>(table: readonly (readonly [RegExp, Facts])[], others: Facts) =>
  (model: string): Facts =>
    table.find(([pattern]) => pattern.test(model))?.[1] ?? others

/** What the vendor charges, in integer pico-dollars per unit. Without a cached price, cached input costs as input. */
export type SandboxPrices = TokenPrices & {
  /** Once per answered request. */
  request?: bigint
  /** Once per web search that the vendor itself makes. */
  webSearch?: bigint
  /** Per spoken character, as the vendor counts characters. */
  character?: bigint
  /** Per image: by `size/quality`, by `size`, or `default`. */
  perImage?: Readonly<Record<string, bigint>>
  /** Per second of video. `videoToken` is per token, where the vendor bills by tokens. */
  videoSecond?: VideoRates
  /** Per video, where the vendor sells whole videos: by resolution and length, such as `768p/6s`. */
  perVideo?: Readonly<Record<string, bigint>>
  videoToken?: VideoRates
  /** Where the request brings an input video. Absent: `videoToken` applies. */
  videoTokenWithInput?: VideoRates
  /**
   * The whole request is priced by the tier with the highest threshold that its input, cached part included, exceeds.
   */
  tiers?: readonly (TokenPrices & { aboveInputTokens: number })[]
}

/**
 * Without a price of its own, writing to the prompt cache costs as input, for an hour as for five minutes, and tokens
 * of images and audio cost as text tokens.
 */
type TokenPrices = {
  input: bigint
  cachedInput?: bigint
  cacheWrite5m?: bigint
  cacheWrite1h?: bigint
  output: bigint
  /** Applies to the whole output if the model reasoned. */
  thinkingOutput?: bigint
  imageInput?: bigint
  audioInput?: bigint
  imageOutput?: bigint
  audioOutput?: bigint
}

/** By lower-case resolution such as `720p` (Kling: by mode), or `default`. Split by sound where the price differs. */
export type VideoRates = Readonly<Record<string, bigint | { readonly sound: bigint; readonly silent: bigint }>>
