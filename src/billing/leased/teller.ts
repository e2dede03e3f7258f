import type { Clock, Timers } from '../../base/clock.ts'
import { crashPoint } from '../../base/crash-points.ts'
import type { Log } from '../../base/log.ts'
import { nano, type Nano } from '../../base/money.ts'
import type { Grant } from '../../store/turn-accounts.ts'
import { Fenced, type Identity, type Posting } from '../../store/turns.ts'
import type { Endings } from '../billing.ts'
import { BankUnavailable, type Bank } from './bank.ts'
import type { Waiter, WaitOutcome } from './lease.ts'
import { Leases } from './leases.ts'
import { endedBy, WrittenTurn, type Ended } from './records.ts'

export type TellerOptions = {
  readonly node: string
  readonly bank: Bank
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Log
  /** Resolves once everything that has ended by now is in the journal, where no power cut can take it away. */
  readonly recorded: () => Promise<void>
  readonly flushed: (ids: readonly string[]) => void
  /** Called when this process must not go on: the disk lost bytes, or another process took its place. */
  readonly fatal: (why: string, cause: unknown) => void
  /** How many endings may wait to be posted before nothing new is admitted. */
  readonly unpostedMax?: number | undefined
}

// A read-only database says for hours which keys are good and takes no posting, and what costs nothing uses no lease
// up. An ending takes about a kilobyte here, and another in the journal. These are a minute of 3,000 requests a second.
const unpostedMaxDefault = 180_000
// No client waits for a posting, since the journal has it. Postings gather for this long and share the cost of a turn.
const flushEveryMs = 500
const idleMs = 2_000
const sweepEveryMs = 1_000
// A node that is silent for a minute is taken for dead, but a node with leases may have no ending to post for an hour.
// So it takes a turn at least this often.
const speakEveryMs = 20_000
const retryMs = 200
const recallsMax = 5
const recallWaitMs = 100

const setBack =
  "the database lacks what this node had committed: compare the ledger with vendors' bills, which have what it charged"

/**
 * Takes the node's turns at the bank, one at a time, each with refills, postings and returns together. Since only one
 * turn is ever under way, the number of the last turn in the database tells exactly what happened when an answer was
 * lost.
 */
export class Teller {
  readonly #options: TellerOptions
  readonly #leases: Leases
  #identity: Identity
  #turn = 0
  #queue: Ended[] = []
  #inTurn: readonly Ended[] = []
  #bookedCount = 0
  #spokeAt = 0
  #recalled = new Set<string>()
  #state: 'closed' | 'open' | 'unreachable' | 'stopped' = 'closed'
  #isClosing = false
  #busy: Promise<void> | undefined
  #cancelFlush: (() => void) | undefined
  #cancelSweep: (() => void) | undefined

  constructor(options: TellerOptions) {
    this.#options = options
    this.#leases = new Leases(options.clock)
    this.#identity = { node: options.node, epoch: 0 }
    options.bank.onRecall?.((accountId) => {
      this.#recalled.add(accountId)
      this.#startTurnIfIdle()
    })
  }

  /** Includes the endings that the last process left unposted. All are posted in order. */
  get endings(): Endings {
    const booked = this.#bookedCount
    return { made: booked + this.#inTurn.length + this.#queue.length, booked }
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /**
   * Takes the node's new epoch, posts what the last process owed, and gives back its leases; says how many these were.
   */
  async open(owed: readonly Posting[]): Promise<{ readonly leases: number }> {
    const { node, bank } = this.#options
    const { epoch, turn, leases, posted } = await bank.open(
      node,
      owed.map(({ holdId }) => holdId),
    )
    this.#identity = { node, epoch }
    this.#turn = turn
    this.#spokeAt = this.#options.clock.monotonic()
    for (const [accountId, amount] of leases) this.#leases.of(accountId).left = amount
    // What reached the database before the crash was taken off its lease in the same commit.
    this.#queue = owed.filter(({ holdId }) => !posted.has(holdId)).map(endedBy)
    if (posted.size > 0) this.#options.flushed([...posted])
    for (const { accountId, charge } of this.#queue) this.#leases.of(accountId).owe(charge)
    this.#state = 'open'
    await this.postAndReturnLeases()
    this.#sweepLater()
    return { leases: leases.size }
  }

  /** Takes the amount from what is already leased, without asking the bank. */
  take(accountId: string, amount: Nano): boolean {
    if (this.#state === 'stopped' || this.#isFarBehind) return false
    return this.#leases.of(accountId).take(amount, this.#options.clock.monotonic())
  }

  /** Waits for a turn at the bank. While the bank is known to be out of reach or far behind, gives up at once. */
  wait(accountId: string, amount: Nano): Promise<WaitOutcome> {
    if (this.#state !== 'open' || this.#isClosing || this.#isFarBehind) return Promise.resolve({ kind: 'unavailable' })
    return new Promise((resolve) => {
      this.#leases.of(accountId).waiters.push({ amount, resolve, isAsked: false, recalls: 0 })
      this.#startTurnIfIdle()
    })
  }

  /**
   * A hold of `amount` ended: what was not charged can be spent again at once. No turn is started here even if there
   * are enough postings for one, because the ending is not in the journal yet and the turn would not wait for it.
   */
  end(amount: Nano, ended: Ended): void {
    this.#leases.of(ended.accountId).end(amount, ended.charge)
    this.#queue.push(ended)
  }

  /** Call it once an ending is written to the journal. A turn waits for the records of the others. */
  postLater(): void {
    if (this.#fillsTurn) this.#startTurnIfIdle()
    else this.#flushLater()
  }

  *unflushed(): Generator<Ended> {
    yield* this.#inTurn
    yield* this.#queue
  }

  /** Also works while the bank is out of reach: what is owed then stays in the journal. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#cancelSweep?.()
    this.#cancelFlush?.()
    crashPoint('drain')
    await this.postAndReturnLeases()
    if (this.#state === 'open') this.#state = 'closed'
  }

  /** Posts everything and gives back all leased money that no hold is using, as long as the bank can be reached. */
  async postAndReturnLeases(): Promise<void> {
    for (;;) {
      // A turn that leaves work behind begins the next one at its end, and that one's postings have left the queue.
      while (this.#busy !== undefined) await this.#busy
      if (this.#state !== 'open' || this.#leases.returnable.length + this.#queue.length === 0) return
      for (const accountId of this.#leases.accounts) this.#recalled.add(accountId)
      await this.#joinOrStartTurn()
    }
  }

  /**
   * For callers that are about to read a balance: posts everything charged by now, and gives back what these accounts'
   * leases do not use. Unlike `postAndReturnLeases` it finishes while other requests keep spending, and leaves other
   * leases alone.
   */
  async bringUpToDate(accountIds: readonly string[]): Promise<void> {
    for (const accountId of accountIds) if (this.#leases.has(accountId)) this.#recalled.add(accountId)
    // Postings leave in order, `postingsPerTurn` at a time. A turn under way began without what is queued now.
    const underWay = this.#busy === undefined ? 0 : 1
    const queued = Math.ceil(this.#queue.length / this.#options.bank.postingsPerTurn)
    for (let turns = underWay + Math.max(1, queued); turns > 0; turns--) {
      if (this.#state !== 'open') return
      await this.#joinOrStartTurn()
    }
  }

  #flushLater(): void {
    this.#cancelFlush ??= this.#options.timers.after(flushEveryMs, () => this.#startTurnIfIdle())
  }

  #startTurnIfIdle(): void {
    this.#cancelFlush?.()
    this.#cancelFlush = undefined
    if (this.#state === 'open' && this.#busy === undefined) void this.#joinOrStartTurn()
  }

  #sweepLater(): void {
    this.#cancelSweep = this.#options.timers.after(sweepEveryMs, () => {
      for (const accountId of this.#leases.idleFor(idleMs)) this.#recalled.add(accountId)
      if (this.#recalled.size > 0 || this.#isLongSilent) this.#startTurnIfIdle()
      this.#sweepLater()
    })
  }

  /** One turn at a time: a caller that comes while one is under way gets that one. */
  #joinOrStartTurn(): Promise<void> {
    this.#busy ??= this.#takeTurn().finally(() => {
      this.#busy = undefined
      if (this.#isUrgent()) this.#startTurnIfIdle()
      else if (this.#queue.length > 0 && !this.#isClosing) this.#flushLater()
    })
    return this.#busy
  }

  /** Whether the next turn must follow at once. Endings that do not fill a turn wait for more of them. */
  #isUrgent(): boolean {
    return this.#fillsTurn || this.#recalled.size > 0 || this.#leases.hasWaiters
  }

  get #fillsTurn(): boolean {
    return this.#queue.length >= this.#options.bank.postingsPerTurn
  }

  get #isFarBehind(): boolean {
    const { unpostedMax = unpostedMaxDefault } = this.#options
    return this.#queue.length + this.#inTurn.length >= unpostedMax
  }

  get #isLongSilent(): boolean {
    return this.#leases.holdsAny && this.#options.clock.monotonic() - this.#spokeAt >= speakEveryMs
  }

  async #takeTurn(): Promise<void> {
    const turn = this.#nextTurn()
    if (turn === undefined) return
    const { bank } = this.#options
    if (turn.ended.length > 0 && !(await this.#isRecorded())) return
    try {
      if (turn.ended.length > 0) crashPoint('before-flush')
      const grants = await bank.turn(this.#identity, turn)
      if (turn.takes.length > 0) crashPoint('lease-refill')
      if (turn.ended.length > 0) crashPoint('after-commit-before-mark')
      this.#turn = turn.number
      this.#spokeAt = this.#options.clock.monotonic()
      this.#posted(turn)
      this.#served(grants)
    } catch (error) {
      if (error instanceof BankUnavailable) return this.#resolveLostTurn(turn, error)
      this.#stop(error)
    }
  }

  /** The books must not have an ending that a power cut could erase here: a replay would give it another outcome. */
  async #isRecorded(): Promise<boolean> {
    try {
      await this.#options.recorded()
      return true
    } catch {
      // The journal has reported its failure itself.
      this.#state = 'stopped'
      this.#leases.refuseWaiters()
      return false
    }
  }

  /** Everything there is to do now; undefined if there is nothing. */
  #nextTurn(): WrittenTurn | undefined {
    const { takes, returns } = this.#leases.ask(this.#recalled)
    this.#recalled.clear()
    const ended = this.#queue.splice(0, this.#options.bank.postingsPerTurn)
    if (takes.length + returns.length + ended.length === 0 && !this.#isLongSilent) return undefined
    this.#inTurn = ended
    return new WrittenTurn({ number: this.#turn + 1, takes, returns }, ended)
  }

  #posted({ ended }: WrittenTurn): void {
    for (const { accountId, charge } of ended) this.#leases.of(accountId).flushed(charge)
    this.#inTurn = []
    this.#bookedCount += ended.length
    if (ended.length > 0) this.#options.flushed(ended.map(({ holdId }) => holdId))
  }

  #served(grants: ReadonlyMap<string, Grant>): void {
    for (const [accountId, grant] of grants) {
      const lease = this.#leases.of(accountId)
      if (grant.kind === 'no-account') {
        for (const waiter of lease.waiters.splice(0)) waiter.resolve({ kind: 'no-account' })
        continue
      }
      lease.granted(grant.amount)
      const unserved = lease.serve()
      const available = nano(lease.left + (grant.kind === 'short' ? grant.rest : 0n))
      // While the turn was under way, holds may have ended, which the next turn can add to the rest. And waiters that
      // came since it began are not refused, because money may have been paid in.
      const isOver = ({ isAsked, amount }: Waiter) => grant.kind === 'short' && isAsked && amount > available
      lease.waiters.push(...unserved.filter((waiter) => !isOver(waiter)))
      this.#refuse(accountId, unserved.filter(isOver), available)
    }
  }

  /** The balance is used up, unless other nodes have leased some of it that they do not need: they are asked first. */
  #refuse(accountId: string, unserved: readonly Waiter[], available: Nano): void {
    const { bank, timers } = this.#options
    const patient = unserved.filter((waiter) => bank.recall !== undefined && waiter.recalls < recallsMax)
    for (const waiter of unserved) {
      if (!patient.includes(waiter)) waiter.resolve({ kind: 'no-funds', available })
    }
    if (patient.length === 0) return
    for (const waiter of patient) waiter.recalls++
    void bank.recall?.(accountId).catch(() => {})
    timers.after(recallWaitMs, () => {
      this.#leases.of(accountId).waiters.push(...patient)
      // A turn that began without these waiters must not refuse them.
      for (const waiter of patient) waiter.isAsked = false
      if (this.#state === 'open') this.#startTurnIfIdle()
      else this.#leases.refuseWaiters()
    })
  }

  /**
   * The answer was lost: waiters are turned away meanwhile, and the bank is asked until it says whether the turn took
   * place. If not, the turn's number is used up, so that a turn that was only slow cannot take place any more.
   */
  async #resolveLostTurn(turn: WrittenTurn, { message: cause }: BankUnavailable): Promise<void> {
    const { bank, log } = this.#options
    this.#state = 'unreachable'
    log.error({ cause }, 'the ledger cannot be reached: what is leased is still served')
    this.#leases.refuseWaiters()
    for (;;) {
      await new Promise<void>((resolve) => this.#options.timers.after(retryMs, resolve))
      try {
        const standing = await bank.resolveLostTurn(this.#identity, turn.number)
        if (standing.turn < turn.number - 1) log.error({}, setBack)
        this.#turn = standing.turn
        if (standing.turn === turn.number) {
          this.#posted(turn)
        } else {
          this.#queue.unshift(...turn.ended)
          this.#inTurn = []
        }
        this.#leases.correct(standing.leases)
        this.#state = 'open'
        log.info({}, 'the ledger can be reached again')
        return
      } catch (error) {
        if (!(error instanceof BankUnavailable)) return this.#stop(error)
        if (this.#isClosing) return
      }
    }
  }

  /** This process was fenced off, or the database refused a posting: either way it must not spend any more. */
  #stop(error: unknown): void {
    this.#state = 'stopped'
    this.#leases.refuseWaiters()
    const why = error instanceof Fenced ? error.message : 'the ledger refused a batch of postings'
    this.#options.fatal(why, error)
  }
}
