import { systemClock, systemTimers, type Clock, type Timers } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { zeroNano, type Nano } from '../base/money.ts'
import { isUnavailable, isWaitedOut } from '../store/faults.ts'
import { takeHold } from '../store/holds.ts'
import { RetryQueue } from '../store/retry-queue.ts'
import { cancelUncertainHold, settleHold, voidHold, type Settlement } from '../store/ledger.ts'
import type { Store } from '../store/open.ts'
import { chargeWithin } from '../store/postings.ts'
import type { Billing, Endings, Hold, Order } from './billing.ts'
import { logExcess, recordOf } from './record.ts'
import { accountDisabled, ledgerAway } from './refusals.ts'

// A broken connection is soon replaced, and a lock soon free, so a settlement is tried again after these pauses: the
// answer is made, and would be lost. After a try of more than a second that the database did not end itself, it hangs.
const pausesMs = [100, 300, 800]
const triedMsMax = 1_000
// No client waits for what is tried in the background. A hold has to be gone within seconds of the database's return.
const behindPauseMs = 500

type Charged = { readonly charge: Nano; readonly excess: Nano }

/**
 * Billing with one database transaction for the hold and one for its end: exact, and the reference for every faster
 * mode. If the database is away when a hold ends, the ending is retried in the background, without the client. After
 * the hold's deadline another node may end it first.
 */
export function makeStrictBilling(parts: {
  store: Store
  node: string
  log: Log
  clock?: Clock
  timers?: Timers
}): Billing {
  const { store, log, clock = systemClock, timers = systemTimers } = parts
  const behind = new RetryQueue({ log, clock, timers, pauseMs: behindPauseMs })
  const endings = new LateEndings()
  /** By hold id: the monotonic time until which this process may still end the hold. */
  const atWork = new Map<string, number>()

  function endLater(id: string, order: Order, charge: Nano, write: () => Promise<unknown>): void {
    const about = { request: order.requestId, hold: id, account: order.accountId, charge: String(charge) }
    log.error(about, 'the database does not answer: the end of a request is not recorded yet')
    const ended = endings.begin()
    atWork.set(id, Infinity)
    void behind
      .add({ write, about })
      .then(ended)
      .then(() => atWork.delete(id))
  }

  function holdOf(id: string, order: Order): Hold {
    const hold = { id, accountId: order.accountId }
    let isInDoubt = false
    atWork.set(id, clock.monotonic() + order.deadline - order.startedAt)

    return {
      // Strict mode records nothing but the hold's row: calls that a crash interrupts are found by reconciling.
      sending: () => undefined,
      mark() {},
      async settle(sale) {
        const settling = new Settling(store, { ...sale, hold, request: recordOf(order, sale) }, order.amount)
        const charged = await patiently(() => settling.settle()).catch((thrown: unknown) => {
          if (!settling.mayBeDone || !isUnavailable(thrown)) throw thrown
          // The commit may have happened, and then the customer has paid: so the answer is delivered, and the
          // settlement is retried until it is certain.
          isInDoubt = true
          endLater(id, order, settling.due.charge, () => settling.settle())
          return settling.due
        })
        if (!isInDoubt) atWork.delete(id)
        logExcess(log, { request: order.requestId, model: order.model }, charged.excess)
        return charged.charge
      },
      async release(ending) {
        if (isInDoubt) return // it is being settled
        const end = () => voidHold(store, { hold, request: recordOf(order, ending), attempts: ending.attempts })
        try {
          await end()
          atWork.delete(id)
        } catch (thrown) {
          if (isUnavailable(thrown)) return endLater(id, order, zeroNano, end)
          atWork.delete(id)
          throw thrown
        }
      },
    }
  }

  /** A lost answer leaves open whether the database committed. Trying again tells, since a hold ends only once. */
  async function patiently<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries++) {
      const triedAt = clock.monotonic()
      try {
        return await work()
      } catch (thrown) {
        const pauseMs = pausesMs[tries]
        const hangs = clock.monotonic() - triedAt > triedMsMax && !isWaitedOut(thrown)
        if (pauseMs === undefined || hangs || !isUnavailable(thrown)) throw thrown
        await new Promise<void>((resume) => timers.after(pauseMs, resume))
      }
    }
  }

  return {
    endings,
    isAtWork: (holdId) => clock.monotonic() < (atWork.get(holdId) ?? 0),
    post: () => behind.idle(),
    close: () => behind.close(),
    async take(order) {
      const id = newId('hold')
      const { accountId, keyId, amount, priceVersion } = order
      // Other nodes judge the deadline too, so it is in the time of the store, which all nodes share.
      const deadline = store.now() + order.deadline - order.startedAt
      const hold = { id, accountId, keyId, kind: 'request', amount, priceVersion, deadline, node: parts.node } as const
      let mayBeTaken = false
      const taken = await takeHold(store, hold, () => (mayBeTaken = true)).catch((thrown: unknown) => {
        if (mayBeTaken && isUnavailable(thrown)) endLater(id, order, zeroNano, () => cancelUncertainHold(store, hold))
        throw ledgerAway(thrown)
      })
      if (taken.outcome === 'held') return { kind: 'hold', hold: holdOf(id, order) }
      if (taken.outcome === 'no-funds') return { kind: 'no-funds', available: taken.available }
      throw accountDisabled()
    },
  }
}

/** One settlement, however often it is tried. */
class Settling {
  readonly #store: Store
  readonly #settlement: Settlement
  /** What the customer pays, whichever try books it. */
  readonly due: Charged
  /** Whether a commit was asked for. From then on only the database's answer can tell whether it happened. */
  mayBeDone = false

  constructor(store: Store, settlement: Settlement, held: Nano) {
    this.#store = store
    this.#settlement = settlement
    this.due = chargeWithin(held, settlement.price, settlement.basis)
  }

  async settle(): Promise<Charged> {
    const settled = await settleHold(this.#store, this.#settlement, () => (this.mayBeDone = true))
    if (settled.outcome === 'settled') return settled
    if (this.mayBeDone && settled.state === 'settled') return this.due
    throw new GatewayError('bug', `hold ${this.#settlement.hold.id} had ended already`)
  }
}

/** Counts only the endings for which the database was away. All others are booked before their caller hears of them. */
class LateEndings implements Endings {
  made = 0
  readonly #unbooked = new Set<number>()

  get booked(): number {
    const [oldest] = this.#unbooked
    return oldest === undefined ? this.made : oldest - 1
  }

  /** Gives the function to call once the ending is booked, or is not tried any more. */
  begin(): () => void {
    const number = ++this.made
    this.#unbooked.add(number)
    return () => this.#unbooked.delete(number)
  }
}
