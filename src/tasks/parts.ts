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
import type { ConcurrencyLimit } from './concurrency.ts'
import type { WithDatabaseRetries } from './database-retries.ts'
import type { Allowances, PaceSettings, StoreRest } from './pace.ts'

/** What tasks are created, polled and ended with. */
export type TaskParts = {
  readonly store: Store
  /** The name under which tasks are claimed. It survives a restart, so that the next process resumes them at once. */
  readonly node: string
  /** Only tasks of this mode are polled; those of the other mode wait until the gateway runs in that mode again. */
  readonly mode: Mode
  /** The machine's clock, for durations and for what vendors are told. Stored times follow the store's clock. */
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
  /** Where vendors may report changes; undefined where they could not reach this gateway. */
  readonly callbacks: Callbacks | undefined
  readonly keepResult: KeepResult
  readonly keepsAll: boolean
  /** How many polls each channel may still get now. */
  readonly allowances: Allowances
  /** Pauses the fetching of videos that have to be kept, while our own store is away or full. */
  readonly storeRest: StoreRest
  readonly withDatabaseRetries: WithDatabaseRetries
  /** Aborts when the node stops. Polls and downloads cut off by it are repeated by the next process or another node. */
  readonly stopping: AbortSignal
  /** Status words that are missing from a vendor's table. */
  readonly unknownStates: UnknownStates
  readonly tally: Tally
  /** Videos are large, so few are fetched at a time, counted by channel so that a slow one delays only its own. */
  readonly keeping: (channelId: string) => ConcurrencyLimit
  readonly reserve: CappedBilling['reserve']
  /** Returns what an account's leases do not use, on this node and as far as possible on others; see `Books`. */
  readonly giveBackLeases: (accountId: string) => Promise<void>
  /** To be called once an event is in the outbox. */
  readonly wakeWebhooks: () => void
}

export type TaskTimeouts = {
  /** A creation that exceeds these is in doubt. */
  readonly create: Timeouts
  readonly ask: Timeouts
  /** For the download of a whole video. */
  readonly fetch: Timeouts
}

export type Callbacks = {
  /** Unguessable, and different for every task. */
  urlOf(taskId: string): string
  /** The task that a token was made for; undefined where we did not make it. */
  taskOf(token: string): string | undefined
}

/** Counts unknown status words by channel since this node started; each has to be added to its vendor's table. */
export type UnknownStates = {
  add(channelId: string, word: string): void
  of(channelId: string): { readonly count: number; readonly last: string | null }
}

/**
 * Stores what a vendor made, and gives the link under which it is served and when that expires. Throws `overloaded`
 * where the fault is our own: the store is full or away.
 */
export type KeepResult = (
  result: Uint8Array | ReadableStream<Uint8Array>,
  about: { readonly mediaType: string; readonly accountId: string; readonly signal: AbortSignal },
) => Promise<{ readonly url: string; readonly expiresAt: number }>
