/** The state of the node at a scrape: values that are looked up then, and not counted along the way. */
export type Standing = {
  readonly mode: string
  readonly isDraining: boolean
  readonly models: number
  readonly openHolds: number
  readonly unposted: number
  readonly unknownStates: readonly { readonly channel: string; readonly count: number }[]
  /** Undefined where the database does not answer. */
  readonly stored: StoredStanding | undefined
}

/** Values from the database, which are of all nodes together. */
export type StoredStanding = {
  readonly tasks: { readonly [state: string]: number }
  readonly tasksInDoubt: number
  readonly pollLagMs: number
  readonly webhooks: number
  readonly webhookLagMs: number
}
