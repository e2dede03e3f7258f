import { nano } from '../../src/base/money.ts'
import type { RequestId } from '../../src/base/ids.ts'
import type { Ending, Hold, Order, Sale, SentAttempt } from '../../src/billing/billing.ts'
import type { Life } from './life.ts'

type What = { readonly kind: 'send' | 'release' } | { readonly kind: 'mark' | 'settle'; readonly price: bigint }
/** One action on a hold. `done` means that its caller was told of its success. */
type Step = What & { done: boolean; doneAt: number; write: number }

/**
 * A hold as its user knows it: the actions on it in order, and how many of them are certain to be remembered. After a
 * crash, the charge must follow from some prefix of the actions that includes all the certain ones.
 */
export class SimulatedRequest {
  readonly order: Order
  readonly life: Life
  readonly steps: Step[] = []
  hold: Hold | undefined
  /** How many steps no crash so far could undo. */
  #certain = 0
  #isFrozen = false

  constructor(order: Order, life: Life) {
    this.order = order
    this.life = life
  }

  get isOpen(): boolean {
    return this.hold !== undefined && !this.steps.some(isEnding)
  }

  /** What its end takes from the lease until it is posted. */
  get charge(): bigint {
    return this.steps.some(isEnding) ? this.#outcome(this.steps.length) : 0n
  }

  begin(what: What): Step {
    const step: Step = { ...what, done: false, doneAt: 0, write: 0 }
    this.steps.push(step)
    return step
  }

  /** Fixes which steps are certain. After this, nothing that the process is told can make a further step certain. */
  freeze(isCertain: (step: Step) => boolean): void {
    if (this.#isFrozen) return
    this.#isFrozen = true
    for (const [at, step] of this.steps.entries()) if (step.done && isCertain(step)) this.#certain = at + 1
  }

  /** The power failed after the process had ended: what the kernel had not yet written to disk is lost too. */
  weaken(isCertain: (step: Step) => boolean): void {
    while (this.#certain > 0 && this.steps.slice(this.#certain - 1, this.#certain).every((step) => !isCertain(step))) {
      this.#certain--
    }
  }

  /** Every charge that would be right. */
  allowed(): Set<bigint> {
    if (!this.#isFrozen) this.freeze(() => true)
    const outcomes = new Set<bigint>()
    for (let length = this.#certain; length <= this.steps.length; length++) outcomes.add(this.#outcome(length))
    return outcomes
  }

  /** Whether its end is certain, so that the bank must know of it in the end. */
  get mustBeRecorded(): boolean {
    return this.steps.slice(0, this.#certain).some(isEnding)
  }

  #outcome(length: number): bigint {
    let isSent = false
    let marked = 0n
    for (const step of this.steps.slice(0, length)) {
      if (step.kind === 'send') isSent = true
      if (step.kind === 'mark') marked = step.price
      if (step.kind === 'release') return 0n
      if (step.kind === 'settle') return this.#capped(step.price)
    }
    return isSent ? this.#capped(marked) : 0n
  }

  #capped(price: bigint): bigint {
    return price < this.order.amount ? price : this.order.amount
  }
}

function isEnding({ kind }: What): boolean {
  return kind === 'settle' || kind === 'release'
}

export function orderOf(id: string, accountId: string, amount: bigint): Order {
  return {
    requestId: id as RequestId,
    accountId,
    keyId: 'key_a',
    model: 'gpt-x',
    capability: 'chat',
    amount: nano(amount),
    priceVersion: 'v1',
    startedAt: 1_800_000_000_000,
    deadline: 1_800_000_600_000,
    caps: [],
  }
}

export function sentOf(id: string): SentAttempt {
  return { id, channel: 'main', vendor: 'openai', upstreamModel: 'gpt-x', createdAt: 1_800_000_000_000 }
}

export function endingOf(attempts: readonly string[], vendorCost: bigint): Ending {
  return {
    status: 200,
    streamed: true,
    durationMs: 7,
    attempts: attempts.map((id) => ({ ...sentOf(id), status: 200, vendorCost: nano(vendorCost), delivered: true })),
  }
}

export function saleOf(price: bigint, attempts: readonly string[]): Sale {
  return { ...endingOf(attempts, price / 2n), basis: 'vendor', usage: { input: 3, output: 4 }, price: nano(price) }
}
