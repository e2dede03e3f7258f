/** How things stand at the moment of a scrape: what is looked up, and not counted on the way. */
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

/** Of all nodes together. */
export type StoredStanding = {
  readonly tasks: { readonly [state: string]: number }
  readonly tasksInDoubt: number
  readonly pollLagMs: number
  readonly webhooks: number
  readonly webhookLagMs: number
}
