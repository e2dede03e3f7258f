import { SetBack, type Clock, type Timers } from '../../base/clock.ts'
import type { GuardedFetch } from '../../base/guarded-fetch.ts'
import type { Log } from '../../base/log.ts'
import type { Store } from '../../store/open.ts'
import {
  bringForward,
  claimEvents,
  dueEvents,
  endAttempt,
  giveUpOverdue,
  hasWaitingEvents,
  releaseClaim,
  releaseClaimsOf,
  type ClaimedEvent,
  type PassOver,
  type WaitingEvent,
} from '../../store/outbox.ts'
import type { Mode } from '../../store/schema.ts'
import type { Tally } from '../../telemetry/tally.ts'
import { attemptDelivery, attemptLimits, endingOf, nextAfter, type AttemptLimits } from './attempt.ts'
import { Gate, gateLimits, type Ending, type GateLimits, type Place } from './gate.ts'
import { giveUpAfterMs, putOffMsMax, turnMsMax } from './schedule.ts'
import type { WebhookSecrets } from './secrets.ts'

export type CourierParts = {
  readonly store: Store
  /** Only the events of this mode's accounts are delivered. */
  readonly mode: Mode
  readonly node: string
  readonly fetch: GuardedFetch
  readonly secrets: WebhookSecrets
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Log
  readonly tally?: Pick<Tally, 'delivered'>
  readonly random?: () => number
  readonly attemptLimits?: AttemptLimits
  readonly gateLimits?: GateLimits
}

// Events of other nodes, retries and lanes that have rested are found by looking; this node's own come by `wake`.
const lookEveryMs = 1_000
// The pause while no event waits: only another node or an operator's command can have added one then.
const idleMs = 2_000
// Twice what an attempt and its two queries take at worst, so that no node claims an event that is being delivered.
const claimMs = 60_000
const lookMax = 200
// Each look starts some deliveries or learns of a full host, so this many looks fill a node, whatever is due.
const looksMax = 20
const overdueEveryMs = 15 * 60_000

/** Delivers the outbox. Any number of nodes may: each event is claimed by one node, and by another if that one dies. */
export class Courier {
  readonly #parts: CourierParts
  readonly #deliveries: Deliveries
  readonly #setBack: SetBack
  #state: 'idle' | 'looking' | 'look-again' | 'closed' = 'idle'
  #looked = Promise.resolve()
  /** Whether the database is away, which is logged once and not every second. */
  #isAway = false
  #hasBegun = false
  #isIdle = false
  #overdueAt: number
  #callOff: () => void

  constructor(parts: CourierParts) {
    const { store, clock, timers } = parts
    this.#parts = parts
    this.#deliveries = new Deliveries(parts, () => this.wake())
    this.#setBack = new SetBack(store, clock)
    this.#overdueAt = clock.monotonic() + overdueEveryMs
    this.#callOff = timers.after(0, () => this.wake())
  }

  /** Looks for due events at once. */
  wake(): void {
    if (this.#state === 'looking') this.#state = 'look-again'
    if (this.#state !== 'idle') return
    this.#callOff()
    this.#state = 'looking'
    this.#looked = this.#lookAndWait()
  }

  /** Stops looking, lets deliveries under way finish for this long, and returns the rest to the outbox. */
  async close({ withinMs }: { readonly withinMs: number }): Promise<void> {
    this.#state = 'closed'
    this.#callOff()
    await this.#looked
    await this.#deliveries.close(withinMs)
  }

  async #lookAndWait(): Promise<void> {
    const { timers, log } = this.#parts
    try {
      await this.#lookOnce()
      this.#isAway = false
    } catch (thrown) {
      if (!this.#isAway) log.warn({ cause: String(thrown) }, 'due webhooks cannot be read at the moment')
      this.#isAway = true
    }
    if (this.#state === 'closed') return
    const pauseMs = this.#isIdle ? idleMs : lookEveryMs
    const waitMs = this.#state === 'look-again' ? 0 : pauseMs
    this.#state = 'idle'
    this.#callOff = timers.after(waitMs, () => this.wake())
  }

  async #lookOnce(): Promise<void> {
    const { store, mode, node, clock } = this.#parts
    if (!this.#hasBegun) await releaseClaimsOf(store.db, { owner: node, now: store.now(), putOffMsMax })
    this.#hasBegun = true
    await this.#setBack.makeUp((ms) => bringForward(store.db, { now: store.now(), ms }))
    if (!this.#isIdle || (await hasWaitingEvents(store.db, mode))) {
      await this.#deliverDue()
      this.#isIdle = this.#deliveries.size === 0 && !(await hasWaitingEvents(store.db, mode))
    }
    if (clock.monotonic() >= this.#overdueAt) await this.#giveUpOverdue()
  }

  async #deliverDue(): Promise<void> {
    const { store, mode } = this.#parts
    for (let looks = 0; looks < looksMax; looks++) {
      const except = this.#state === 'closed' ? undefined : this.#deliveries.passOver()
      if (except === undefined) return
      const due = await dueEvents(store.db, { mode, now: store.now(), limit: lookMax, except })
      const admitted = await this.#deliveries.begin(due)
      if (due.length < lookMax || admitted === 0) return
    }
  }

  async #giveUpOverdue(): Promise<void> {
    const { store, mode, clock, log } = this.#parts
    this.#overdueAt = clock.monotonic() + overdueEveryMs
    const now = store.now()
    const overdue = { mode, now, madeBefore: now - giveUpAfterMs, dueBefore: now - turnMsMax }
    const count = await giveUpOverdue(store.db, overdue)
    if (count > 0) log.warn({ count }, 'webhooks to hosts that do not answer were given up')
  }
}

/** The deliveries under way. */
class Deliveries {
  readonly #parts: CourierParts
  readonly #ended: () => void
  readonly #gate: Gate
  readonly #underWay = new Set<Promise<void>>()
  readonly #stop = new AbortController()

  /** `ended` is called whenever a delivery has made room. */
  constructor(parts: CourierParts, ended: () => void) {
    this.#parts = parts
    this.#ended = ended
    this.#gate = new Gate(parts.clock, parts.gateLimits ?? gateLimits)
  }

  get size(): number {
    return this.#underWay.size
  }

  /** What a look for due events leaves out; undefined where there is no place at all. */
  passOver(): PassOver | undefined {
    return this.#gate.passOver()
  }

  /** Starts the deliveries that get a place, and gives how many did. */
  async begin(due: readonly WaitingEvent[]): Promise<number> {
    const { store, node } = this.#parts
    const places = new Map<string, Place>()
    for (const event of due) {
      const place = this.#gate.enter(event)
      if (place !== undefined) places.set(event.id, place)
    }
    const admitted = places.size
    try {
      const now = store.now()
      const claim = { ids: [...places.keys()], now, owner: node, until: now + claimMs }
      for (const event of await claimEvents(store, claim)) {
        const place = places.get(event.id)
        if (place === undefined) continue
        places.delete(event.id)
        const delivered = this.#deliver(event, place).finally(() => this.#underWay.delete(delivered))
        this.#underWay.add(delivered)
      }
    } finally {
      // Another node claimed these events first, or the database did not answer.
      for (const place of places.values()) place.leave('abandoned')
    }
    return admitted
  }

  async close(withinMs: number): Promise<void> {
    const cutOff = setTimeout(() => this.#stop.abort(), withinMs)
    await Promise.all(this.#underWay)
    clearTimeout(cutOff)
  }

  async #deliver(event: ClaimedEvent, place: Place): Promise<void> {
    const { store, secrets, fetch, clock, log, tally, random = Math.random } = this.#parts
    const attempting = { fetch, clock, limits: this.#parts.attemptLimits ?? attemptLimits }
    let ending: Ending = 'abandoned'
    try {
      const valid = await secrets.valid(event.accountId)
      const attempt = await attemptDelivery(attempting, event, valid, this.#stop.signal)
      if (attempt === undefined) return await releaseClaim(store.db, event)
      ending = endingOf(attempt)
      const next = nextAfter(attempt, event.attempts + 1, store.now(), random)
      const { status, why, durationMs } = attempt
      const outcome = next.state === 'delivered' ? 'a webhook was delivered' : 'a webhook was not delivered'
      log.info({ event: event.id, status, why, durationMs, state: next.state }, outcome)
      await endAttempt(store, event, attempt, next)
      tally?.delivered(next.state === 'pending' ? 'put-off' : next.state)
    } catch (thrown) {
      // The outcome is unknown to the database, so the event is sent again once the claim has run out.
      log.warn({ event: event.id, cause: String(thrown) }, 'the outcome of a webhook could not be recorded')
    } finally {
      place.leave(ending)
      this.#ended()
    }
  }
}
