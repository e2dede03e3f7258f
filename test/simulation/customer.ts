import { GatewayError } from '../../src/base/errors.ts'
import { nano } from '../../src/base/money.ts'
import type { LeasedBilling } from '../../src/billing/leased/leased.ts'
import type { Life } from './life.ts'
import { isDiskFull, isOverloaded, isSyncFailure, type Machine } from './machine.ts'
import type { ModelBank } from './model-bank.ts'
import { endingOf, orderOf, saleOf, sentOf, SimulatedRequest } from './request.ts'
import { describe, type World } from './world.ts'

/** A take that waits for its answer, and whether the balance was ever too small for it meanwhile. */
type Waiting = {
  readonly request: SimulatedRequest
  readonly machine: Machine
  readonly since: number
  wasShort: boolean
  wasDisabled: boolean
}

// Longer than every turn, outage notice and recall that a take may have to wait for, one after another.
const answerMsMax = 10_000

/** The customers: they take, send, mark and settle at random moments, and record what they were told. */
export class Customers {
  readonly #world: World
  readonly #model: ModelBank
  readonly #waiting = new Set<Waiting>()
  readonly counts = { held: 0, noFunds: 0, overloaded: 0, settled: 0, released: 0, refusedEnd: 0 }
  /** Whether no other data fills the disk, so that an ending always fits into the reserve. */
  endingsAlwaysFit = true
  #made = 0
  /** What happens at some moment in one event. Requests go in step, and what several of them record is one write. */
  readonly #steps = new Map<number, (() => void)[]>()
  /** How far these moments are apart: with 1 there is mostly one request in each. */
  readonly #stepMs: number

  constructor(world: World, model: ModelBank) {
    this.#world = world
    this.#model = model
    this.#stepMs = world.random.pick([1, 1, 20, 100])
  }

  /** Runs it at the next step in so many milliseconds, with all others of that step. */
  inStep(ms: number, run: () => void): void {
    const at = Math.ceil((this.#world.now + ms) / this.#stepMs) * this.#stepMs
    const others = this.#steps.get(at)
    if (others !== undefined) {
      others.push(run)
      return
    }
    const step = [run]
    this.#steps.set(at, step)
    this.#world.after(at - this.#world.now, () => {
      this.#steps.delete(at)
      for (const each of step) each()
    })
  }

  /** One request, from its take to its end, in its own time. */
  async spend(machine: Machine, billing: LeasedBilling, life: Life, accountId: string, amount: bigint): Promise<void> {
    const { random } = this.#world
    const request = new SimulatedRequest(orderOf(`req_${++this.#made}`, accountId, amount), life)
    machine.requests.push(request)
    if (life.isReplaced) request.freeze(() => false)
    if (!(await this.#take(machine, billing, request))) return
    for (let attempt = random.pick([0, 1, 1, 1, 2]); attempt > 0; attempt--) {
      await this.#pause(life)
      if (!(await this.#send(machine, request))) break
    }
    const isSent = request.steps.some(({ done }) => done)
    for (let marks = isSent ? random.between(0, 3) : 0; marks > 0; marks--) {
      await this.#pause(life)
      await this.#mark(machine, request)
    }
    await this.#pause(life)
    // Some stay open until the end of the run.
    if (!random.chance(0.1)) await this.end(machine, request)
  }

  /** Called after every commit and before every answer: a refusal must have been true at one of these moments. */
  look(): void {
    for (const waiting of this.#waiting) {
      const { order } = waiting.request
      waiting.wasShort ||= this.#wanted(waiting) > this.#free(waiting)
      if (this.#model.accounts.get(order.accountId)?.enabled === false) waiting.wasDisabled = true
    }
  }

  /** No take may wait for ever. */
  checkAnswered(): void {
    for (const { request, since } of this.#waiting) {
      const { life, order } = request
      if (life.isAlive && !life.isReplaced && this.#world.now - since > answerMsMax) {
        this.#world.fail(`${order.requestId} on ${life.name} has waited since ${since} ms`)
      }
    }
  }

  async end(machine: Machine, request: SimulatedRequest): Promise<void> {
    const { hold, life, order } = request
    if (hold === undefined || !request.isOpen || !life.isAlive) return
    const { random } = this.#world
    const sent = request.steps.filter(({ kind }) => kind === 'send').map((_, at) => `${order.requestId}.${at}`)
    const price = BigInt(random.between(0, Math.round(Number(order.amount) * 1.2)))
    const settles = sent.length > 0 && random.chance(0.8)
    const step = request.begin(settles ? { kind: 'settle', price } : { kind: 'release' })
    try {
      const ending = settles
        ? hold.settle(saleOf(price, sent))
        : hold.release(endingOf(sent, random.chance(0.5) ? 0n : price / 3n))
      const charge = await ending
      if (!life.isAlive) return
      step.write = machine.disk.writes
      step.done = true
      step.doneAt = this.#world.now
      this.counts[settles ? 'settled' : 'released']++
      if (settles && charge !== request.charge)
        this.#world.fail(`${order.requestId} was told a charge of ${String(charge)}`)
    } catch (thrown) {
      if (!life.isAlive) return
      this.counts.refusedEnd++
      if (isDiskFull(thrown) && this.endingsAlwaysFit) this.#world.fail(`${order.requestId} found the disk full`)
      if (!isDiskFull(thrown) && !isSyncFailure(thrown)) this.#world.fail(`an ending threw ${describe(thrown)}`)
      return
    }
    if (random.chance(0.1)) await this.#endAgain(request)
  }

  /** A second ending must change nothing, whatever it returns. */
  async #endAgain({ hold }: SimulatedRequest): Promise<void> {
    const { random } = this.#world
    const again = random.chance(0.5) ? hold?.settle(saleOf(1n, [])) : hold?.release(endingOf([], 0n))
    await again?.catch(() => {})
  }

  async #take(machine: Machine, billing: LeasedBilling, request: SimulatedRequest): Promise<boolean> {
    const { life, order } = request
    const waiting = { request, machine, since: this.#world.now, wasShort: false, wasDisabled: false }
    this.#waiting.add(waiting)
    this.look()
    try {
      const taken = await billing.take(order)
      if (!life.isAlive) return false
      this.look()
      if (taken.kind === 'hold') {
        this.counts.held++
        request.hold = taken.hold
        return true
      }
      this.counts.noFunds++
      if (!waiting.wasShort && !life.isReplaced) {
        const free = this.#free(waiting)
        this.#world.fail(`${order.requestId} was refused ${order.amount}, and ${free} were there all the time`)
      }
    } catch (thrown) {
      if (!life.isAlive) return false
      if (isOverloaded(thrown)) this.counts.overloaded++
      else if (!(thrown instanceof GatewayError && thrown.kind === 'unauthenticated' && waiting.wasDisabled)) {
        this.#world.fail(`a take threw ${describe(thrown)}`)
      }
    } finally {
      this.#waiting.delete(waiting)
    }
    return false
  }

  async #send(machine: Machine, request: SimulatedRequest): Promise<boolean> {
    // The calm at the end of a run ends every request, perhaps before its customer has got this far.
    if (!request.isOpen || !request.life.isAlive) return false
    const attempt = request.steps.filter(({ kind }) => kind === 'send').length
    return this.#record(machine, request, { kind: 'send' }, (hold) =>
      hold.sending(sentOf(`${request.order.requestId}.${attempt}`)),
    )
  }

  async #mark(machine: Machine, request: SimulatedRequest): Promise<void> {
    if (!request.isOpen || !request.life.isAlive) return
    const price = BigInt(this.#world.random.between(0, Math.round(Number(request.order.amount) * 1.2)))
    const sent = request.steps.filter(({ kind }) => kind === 'send')
    const delivered = sent.map((_, at) => ({ id: `${request.order.requestId}.${at}`, vendorCost: nano(price / 2n) }))
    const progress = { usage: { input: 1, output: 1 }, price: nano(price), delivered }
    await this.#record(machine, request, { kind: 'mark', price }, (hold) => hold.mark(() => progress))
  }

  async #record(
    machine: Machine,
    request: SimulatedRequest,
    what: Parameters<SimulatedRequest['begin']>[0],
    act: (hold: NonNullable<SimulatedRequest['hold']>) => Promise<void> | undefined | void,
  ): Promise<boolean> {
    if (request.hold === undefined) return false
    const step = request.begin(what)
    try {
      await act(request.hold)
      if (!request.life.isAlive) return false
      step.done = true
      step.doneAt = this.#world.now
      step.write = machine.disk.writes
      return true
    } catch (thrown) {
      const isExpected = !request.life.isAlive || isDiskFull(thrown) || isOverloaded(thrown) || isSyncFailure(thrown)
      if (!isExpected) this.#world.fail(`a ${what.kind} threw ${describe(thrown)}`)
      return false
    }
  }

  #pause(life: Life): Promise<void> {
    const { random } = this.#world
    const ms = random.chance(0.1) ? random.between(0, 3_000) : random.between(0, 60)
    return new Promise((resolve) => this.inStep(ms, () => life.isAlive && resolve()))
  }

  /**
   * The sum of all takes that wait on this node for the same account, because any of them may have been served first.
   */
  #wanted({ request: { life, order } }: Waiting): bigint {
    let wanted = 0n
    for (const { request } of this.#waiting) {
      if (request.life === life && request.order.accountId === order.accountId) wanted += request.order.amount
    }
    return wanted
  }

  /** What this node could spend of the account if it asked the bank at this moment. */
  #free({ machine, request: { life, order } }: Waiting): bigint {
    const account = this.#model.accounts.get(order.accountId)
    if (account === undefined || account.unlimited) return order.amount
    let left = this.#model.leaseOf(machine.options.node, order.accountId)
    for (const request of machine.requests) {
      if (request.life !== life || request.order.accountId !== order.accountId) continue
      if (request.isOpen) left -= request.order.amount
      else if (!this.#model.costs.has(request.order.requestId)) left -= request.charge
    }
    return account.posted - account.held + left
  }
}
