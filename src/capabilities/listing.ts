import type { Capability } from './capability.ts'

/** A model as a list of models shows it, in whatever form. */
export type ListedModel = {
  readonly id: string
  readonly capabilities: readonly Capability[]
  /** Unix seconds. */
  readonly created: number
  readonly vendor: string
  readonly contextTokens: number
  readonly outputTokensMax: number
}
