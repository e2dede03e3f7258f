import type { Clock } from '../base/clock.ts'
import type { Channel } from '../upstream/channels.ts'

/** How often a vendor is asked about a task, and about all of them. */
export type Pace = {
  /** Polls a second, of one node at one channel. */
  readonly perSecond: number
  /** Between two polls of one task: the first wait, and what it grows to. */
  readonly firstMs: number
  readonly slowestMs: number
  /** After polls that told nothing. */
  readonly retryMs: number
  readonly retryMsMax: number
  /** After a vendor did not know a task: four answers over a minute are believed. */
  readonly lostMs: number
  /** A creation of unknown fate may still be under way for so long; what a list says earlier is not believed. */
  readonly doubtMs: number
}

/** What the operator decides; see `tasks` in the settings. */
export type PaceSettings = { readonly pollMs: number; readonly doubtMs: number }

export const usualPace: PaceSettings = { pollMs: 5_000, doubtMs: 60_000 }

/** Where a vendor says no more: three times as long between two polls of a task that takes its time. */
function paceFor({ pollMs, doubtMs }: PaceSettings): Pace {
  return {
    perSecond: 10,
    firstMs: pollMs,
    slowestMs: 3 * pollMs,
    retryMs: pollMs,
    retryMsMax: 6 * pollMs,
    lostMs: 4 * pollMs,
    doubtMs,
  }
}

/** Polls a second that a vendor bears, where it says so. */
const perSecond: Readonly<Record<string, number>> = {
  // 20 for an account; several nodes and the account's other programs share them.
  dashscope: 8,
}

/** A simulator is on this machine and takes a moment for what takes a vendor minutes. */
const simulated: Pace = {
  perSecond: 500,
  firstMs: 100,
  slowestMs: 500,
  retryMs: 200,
  retryMsMax: 1_000,
  lostMs: 200,
  doubtMs: 1_000,
}

export function paceOf(
  channel: Pick<Channel, 'vendor' | 'tireless'> | undefined,
  settings: PaceSettings = usualPace,
): Pace {
  if (channel?.tireless === true) return simulated
  const pace = paceFor(settings)
  return { ...pace, perSecond: perSecond[channel?.vendor.id ?? ''] ?? pace.perSecond }
}

const growth = 1.5
// What began together must not go on together.
const jitterShare = 0.2

/** How long to wait after so many waits. */
function grown(firstMs: number, mostMs: number, times: number, random: () => number): number {
  const plain = Math.min(mostMs, firstMs * growth ** Math.min(times, 50))
  return Math.round(plain * (1 - jitterShare + 2 * jitterShare * random()))
}

export function pollWait(pace: Pace, polls: number, random: () => number): number {
  return grown(pace.firstMs, pace.slowestMs, polls, random)
}

export function retryWait(pace: Pace, failures: number, random: () => number): number {
  return grown(pace.retryMs, pace.retryMsMax, failures, random)
}

/** So that whatever failed together does not come back together. */
export function jittered(ms: number, random: () => number): number {
  return grown(ms, ms, 0, random)
}

/** What each channel may be asked now: it grows with time up to a second's worth, so that nothing comes in a burst. */
export class Allowances {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #left = new Map<string, { count: number; at: number }>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** At most so many; fewer where the channel had its share. */
  take(channelId: string, perSecond: number, wanted: number): number {
    const now = this.#clock.monotonic()
    const before = this.#left.get(channelId) ?? { count: perSecond, at: now }
    if (now < before.at) return 0
    const left = Math.min(perSecond, before.count + ((now - before.at) / 1000) * perSecond)
    const taken = Math.min(wanted, Math.floor(left))
    this.#left.set(channelId, { count: left - taken, at: now })
    return taken
  }

  /** The vendor says that it was asked too often: nothing for so long, and then what grows from nothing. */
  rest(channelId: string, ms: number): void {
    const at = this.#clock.monotonic() + ms
    if (at > (this.#left.get(channelId)?.at ?? 0)) this.#left.set(channelId, { count: 0, at })
  }

  /** What was taken and not used. */
  giveBack(channelId: string, count: number): void {
    const left = this.#left.get(channelId)
    if (left !== undefined) left.count += count
  }
}

/** Our own store was away or full a moment ago: until it may be back, nothing is fetched for it to be thrown away. */
export class StoreRest {
  readonly #clock: Pick<Clock, 'monotonic'>
  #until = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  begin(ms: number): void {
    this.#until = this.#clock.monotonic() + ms
  }

  get isOn(): boolean {
    return this.#clock.monotonic() < this.#until
  }
}
