import type { Clock, Timers } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Label } from '../base/secret.ts'
import type { CappedBilling } from '../billing/caps.ts'
import type { Store } from '../store/open.ts'
import type { Mode } from '../store/schema.ts'
import type { Tally } from '../telemetry/tally.ts'
import type { Channels } from '../upstream/channels.ts'
import type { FetchLink } from '../upstream/links.ts'
import type { Timeouts, Transport } from '../upstream/transport.ts'
import type { Insist } from './insist.ts'
import type { Allowances, PaceSettings, StoreRest } from './pace.ts'

/** What tasks are made, watched and ended with. */
export type TaskParts = {
  readonly store: Store
  /** Who claims: the same name after a restart, so that what was left is taken up at once. */
  readonly node: string
  /** Whose tasks: those of the other mode wait until it runs again. */
  readonly mode: Mode
  /** The machine's own, for durations and for what vendors are told. What is kept goes by the store's. */
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  readonly log: Log
  readonly channels: () => Channels
  readonly transport: Transport
  readonly fetchLink: FetchLink
  readonly tenantLabel: Label
  readonly timeouts: TaskTimeouts
  readonly attemptsMax: number
  readonly pace: PaceSettings
  /** How long a task is kept after its end. */
  readonly keepMs: number
  /** Where vendors may tell us of changes; undefined where they could not reach us. */
  readonly callbacks: Callbacks | undefined
  readonly keepResult: KeepResult
  readonly keepsAll: boolean
  /** How often each channel may still be asked about its tasks. */
  readonly allowances: Allowances
  /** Whether films that have to be kept are fetched now. */
  readonly storeRest: StoreRest
  readonly insist: Insist
  /** Aborts when the node stops: questions and films that are cut off then are asked for again by whoever is next. */
  readonly stopping: AbortSignal
  /** Words for a state that a vendor never said before. */
  readonly oddWords: OddWords
  readonly tally: Tally
  /** Films are large: few are fetched at a time, and those of a slow channel wait for each other alone. */
  readonly keeping: (channelId: string) => Turns
  readonly reserve: CappedBilling['reserve']
  /** Gives back what leases of an account do not use, here and as far as possible elsewhere; see `Books`. */
  readonly giveBackLeases: (accountId: string) => Promise<void>
  /** An event was put into the outbox. */
  readonly told: () => void
}

export type TaskTimeouts = {
  /** A creation: from then on it is in doubt. */
  readonly create: Timeouts
  readonly ask: Timeouts
  /** Of a whole film. */
  readonly fetch: Timeouts
}

export type Callbacks = {
  /** Unguessable, and different for every task. */
  urlOf(taskId: string): string
  /** The task that a token was made for; undefined where we did not make it. */
  taskOf(token: string): string | undefined
}

/** Counts, channel by channel, since this node began: somebody has to teach us such a word. */
export type OddWords = {
  add(channelId: string, word: string): void
  of(channelId: string): { readonly count: number; readonly last: string | null }
}

/**
 * Keeps what a vendor made, and gives the link under which it is served for so long. Throws `overloaded` where that is our own
 * trouble: there is no room, or the store is away.
 */
export type KeepResult = (
  result: Uint8Array | ReadableStream<Uint8Array>,
  about: { readonly mediaType: string; readonly accountId: string; readonly signal: AbortSignal },
) => Promise<{ readonly url: string; readonly expiresAt: number }>

/** So many at a time, and the others in their order. */
export type Turns = { run<T>(work: () => Promise<T>): Promise<T> }

export function turnsByChannel(atOnceMax: number): (channelId: string) => Turns {
  const turns = new Map<string, Turns>()
  return (channelId) => {
    const known = turns.get(channelId) ?? makeTurns(atOnceMax)
    turns.set(channelId, known)
    return known
  }
}

function makeTurns(atOnceMax: number): Turns {
  let running = 0
  const waiting: (() => void)[] = []
  return {
    async run(work) {
      if (running >= atOnceMax) await new Promise<void>((resolve) => waiting.push(resolve))
      else running++
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next === undefined) running--
        else next()
      }
    },
  }
}
