import type { Capability } from './capability.ts'

/** What every protocol's list of models shows of a model. */
export type ListedModel = {
  readonly id: string
  readonly capabilities: readonly Capability[]
  /** Unix seconds. */
  readonly created: number
  readonly vendor: string
  readonly contextTokens: number
  readonly outputTokensMax: number
  /** The day on which its vendor has announced to end it. */
  readonly endDate?: string
}
