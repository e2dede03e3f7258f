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

export type Courier = {
  /** Looks for due events at once. */
  wake(): void
  /** Stops looking, lets deliveries under way finish for this long, and returns the rest to the outbox. */
  close(options: { readonly withinMs: number }): Promise<void>
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
export function startCourier(parts: CourierParts): Courier {
  const { store, mode, node, secrets, clock, timers, log, random = Math.random } = parts
  const attempting = { fetch: parts.fetch, clock, limits: parts.attemptLimits ?? attemptLimits }
  const gate = new Gate(clock, parts.gateLimits ?? gateLimits)
  const setBack = new SetBack(store, clock)
  const underWay = new Set<Promise<void>>()
  const stop = new AbortController()
  let state: 'idle' | 'looking' | 'look-again' | 'closed' = 'idle'
  let looked = Promise.resolve()
  /** Whether the database is away, which is logged once and not every second. */
  let isAway = false
  let hasBegun = false
  let isIdle = false
  let overdueAt = clock.monotonic() + overdueEveryMs
  let callOff = timers.after(0, wake)

  function wake(): void {
    if (state === 'looking') state = 'look-again'
    if (state !== 'idle') return
    callOff()
    state = 'looking'
    looked = lookAndWait()
  }

  async function lookAndWait(): Promise<void> {
    try {
      if (!hasBegun) await releaseClaimsOf(store.db, { owner: node, now: store.now(), putOffMsMax })
      hasBegun = true
      await setBack.makeUp((ms) => bringForward(store.db, { now: store.now(), ms }))
      if (!isIdle || (await hasWaitingEvents(store.db, mode))) await lookClosely()
      if (clock.monotonic() >= overdueAt) await tidyUp()
      isAway = false
    } catch (thrown) {
      if (!isAway) log.warn({ cause: String(thrown) }, 'due webhooks cannot be read at the moment')
      isAway = true
    }
    if (state === 'closed') return
    const pauseMs = isIdle ? idleMs : lookEveryMs
    const waitMs = state === 'look-again' ? 0 : pauseMs
    state = 'idle'
    callOff = timers.after(waitMs, wake)
  }

  async function lookClosely(): Promise<void> {
    await look()
    isIdle = underWay.size === 0 && !(await hasWaitingEvents(store.db, mode))
  }

  async function look(): Promise<void> {
    for (let looks = 0; looks < looksMax; looks++) {
      const except = state === 'closed' ? undefined : gate.passOver()
      if (except === undefined) return
      const due = await dueEvents(store.db, { mode, now: store.now(), limit: lookMax, except })
      const admitted = await begin(due)
      if (due.length < lookMax || admitted === 0) return
    }
  }

  /** Starts the deliveries that get a place, and gives how many did. */
  async function begin(due: readonly WaitingEvent[]): Promise<number> {
    const places = new Map<string, Place>()
    for (const event of due) {
      const place = gate.enter(event)
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
        const delivered = deliver(event, place).finally(() => underWay.delete(delivered))
        underWay.add(delivered)
      }
    } finally {
      // Another node claimed these events first, or the database did not answer.
      for (const place of places.values()) place.leave('abandoned')
    }
    return admitted
  }

  async function deliver(event: ClaimedEvent, place: Place): Promise<void> {
    let ending: Ending = 'abandoned'
    try {
      const valid = await secrets.valid(event.accountId)
      const attempt = await attemptDelivery(attempting, event, valid, stop.signal)
      if (attempt === undefined) return await releaseClaim(store.db, event)
      ending = endingOf(attempt)
      const next = nextAfter(attempt, event.attempts + 1, store.now(), random)
      const { status, why, durationMs } = attempt
      const outcome = next.state === 'delivered' ? 'a webhook was delivered' : 'a webhook was not delivered'
      log.info({ event: event.id, status, why, durationMs, state: next.state }, outcome)
      await endAttempt(store, event, attempt, next)
      parts.tally?.delivered(next.state === 'pending' ? 'put-off' : next.state)
    } catch (thrown) {
      // The outcome is unknown to the database, so the event is sent again once the claim has run out.
      log.warn({ event: event.id, cause: String(thrown) }, 'the outcome of a webhook could not be recorded')
    } finally {
      place.leave(ending)
      wake()
    }
  }

  async function tidyUp(): Promise<void> {
    overdueAt = clock.monotonic() + overdueEveryMs
    const now = store.now()
    const overdue = { mode, now, madeBefore: now - giveUpAfterMs, dueBefore: now - turnMsMax }
    const count = await giveUpOverdue(store.db, overdue)
    if (count > 0) log.warn({ count }, 'webhooks to hosts that do not answer were given up')
  }

  return {
    wake,
    async close({ withinMs }) {
      state = 'closed'
      callOff()
      await looked
      const cutOff = setTimeout(() => stop.abort(), withinMs)
      await Promise.all(underWay)
      clearTimeout(cutOff)
    },
  }
}
