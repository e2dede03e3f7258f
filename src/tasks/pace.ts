import type { Clock } from '../base/clock.ts'
import type { Channel } from '../upstream/channels.ts'

/** How often a vendor is polled, about one task and about all of them. */
export type Pace = {
  /** Polls per second of one node at one channel. */
  readonly perSecond: number
  /** Between two polls of one task: the first wait and the longest. */
  readonly firstMs: number
  readonly slowestMs: number
  /** The same after polls that brought no news. */
  readonly retryMs: number
  readonly retryMsMax: number
  /** The wait after a vendor did not know a task: four such answers over a minute are believed. */
  readonly lostMs: number
  /** How long a creation in doubt may still be under way; what a vendor's list says earlier is not believed. */
  readonly doubtMs: number
}

/** What the operator decides; see `tasks` in the settings. */
export type PaceSettings = { readonly pollMs: number; readonly doubtMs: number }

export const usualPace: PaceSettings = { pollMs: 5_000, doubtMs: 60_000 }

/** The pace at a vendor that states none. The waits between polls of a long task grow to three times the first. */
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

/** Polls per second, for vendors that state a limit. */
const perSecond: Readonly<Record<string, number>> = {
  // DashScope allows 20 per account, which several nodes and the account's other programs share.
  dashscope: 8,
}

/** A simulator runs on this machine and finishes in a moment what takes a vendor minutes. */
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
  channel: Pick<Channel, 'vendor' | 'isSimulator'> | undefined,
  settings: PaceSettings = usualPace,
): Pace {
  if (channel?.isSimulator === true) return simulated
  const pace = paceFor(settings)
  return { ...pace, perSecond: perSecond[channel?.vendor.id ?? ''] ?? pace.perSecond }
}

const growth = 1.5
// Tasks that began together must not be polled together.
const jitterShare = 0.2

/** The wait that follows so many earlier ones. */
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

/** Spreads a wait, so that what failed together is not retried together. */
export function jittered(ms: number, random: () => number): number {
  return grown(ms, ms, 0, random)
}

/** How many polls each channel may get now. It grows with time up to a second's worth, so that no burst builds up. */
export class Allowances {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #left = new Map<string, { count: number; at: number }>()
  /** By channel and credential. */
  readonly #refusedUntil = new Map<string, number>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Gives `wanted`, or fewer where the channel has used up its share. */
  take(channelId: string, perSecond: number, wanted: number): number {
    const now = this.#clock.monotonic()
    const before = this.#left.get(channelId) ?? { count: perSecond, at: now }
    if (now < before.at) return 0
    const left = Math.min(perSecond, before.count + ((now - before.at) / 1000) * perSecond)
    const taken = Math.min(wanted, Math.floor(left))
    this.#left.set(channelId, { count: left - taken, at: now })
    return taken
  }

  /** The vendor says that it was polled too often: allows nothing for this long, and then grows from zero. */
  rest(channelId: string, ms: number): void {
    const at = this.#clock.monotonic() + ms
    if (at > (this.#left.get(channelId)?.at ?? 0)) this.#left.set(channelId, { count: 0, at })
  }

  /** The vendor refused a poll with this credential, and would refuse others. */
  refuse(channelId: string, credential: string, ms: number): void {
    this.#refusedUntil.set(`${channelId}\n${credential}`, this.#clock.monotonic() + ms)
  }

  isRefused(channelId: string, credential: string): boolean {
    return (this.#refusedUntil.get(`${channelId}\n${credential}`) ?? 0) > this.#clock.monotonic()
  }

  /** Returns what was taken and not used. */
  giveBack(channelId: string, count: number): void {
    const left = this.#left.get(channelId)
    if (left !== undefined) left.count += count
  }
}

/** While our own store is away or full, no video is fetched for it, because the download would only be thrown away. */
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
