/** A model as the simulated vendor sells it: plain facts, given by whoever starts the sandbox. */
export type SandboxModel = {
  vendor: string
  /** The vendor's own spelling of the id: what arrives in `model`. */
  model: string
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

/** Integer pico-dollars per unit: what the vendor charges. Without a cached price, cached input costs as input. */
export type SandboxPrices = TokenPrices & {
  /** Once per answered request. */
  request?: bigint
  /** Once per search that the vendor itself makes. */
  webSearch?: bigint
  /** The whole request costs the tier with the highest threshold that its input, cached part included, exceeds. */
  tiers?: readonly (TokenPrices & { aboveInputTokens: number })[]
}

/** Writing to the prompt cache costs as input where it has no price, for an hour as for five minutes. */
type TokenPrices = {
  input: bigint
  cachedInput?: bigint
  cacheWrite5m?: bigint
  cacheWrite1h?: bigint
  output: bigint
}
