import { nano } from '../../src/base/money.ts'
import { type Grant } from '../../src/store/turn-accounts.ts'
import { Fenced, type Identity, type Posting, type Standing, type Turn } from '../../src/store/turns.ts'

type Account = { posted: bigint; held: bigint; unlimited: boolean; enabled: boolean; credited: bigint }
type Node = { epoch: number; turn: number }

/** Money that was moved for a request that ended. */
type Booked = { readonly requestId: string; readonly accountId: string; readonly charge: bigint }

/**
 * The bank's rules in a page of plain arithmetic, without any of the store's code. Where it and the store disagree, one
 * of them is wrong.
 */
export class ModelBank {
  readonly accounts = new Map<string, Account>()
  readonly nodes = new Map<string, Node>()
  readonly #leases = new Map<string, Map<string, bigint>>()
  /** Postings that moved money, by hold. */
  readonly booked = new Map<string, Booked>()
  /** The cost on record for each request. */
  readonly costs = new Map<string, bigint>()
  /** Rules that a commit broke. */
  readonly breaches: string[] = []

  addAccount(id: string, balance: bigint, unlimited: boolean): void {
    this.accounts.set(id, { posted: balance, held: 0n, unlimited, enabled: true, credited: balance })
  }

  credit(id: string, amount: bigint): void {
    const account = this.#account(id)
    account.posted += amount
    account.credited += amount
    this.#check()
  }

  leaseOf(node: string, accountId: string): bigint {
    return this.#leases.get(node)?.get(accountId) ?? 0n
  }

  open(node: string, holdIds: readonly string[]): Standing & { epoch: number; posted: ReadonlySet<string> } {
    const before = this.nodes.get(node)
    const row = { epoch: (before?.epoch ?? 0) + 1, turn: before?.turn ?? 0 }
    this.nodes.set(node, row)
    return { ...row, leases: this.#leasesOf(node), posted: new Set(holdIds.filter((id) => this.booked.has(id))) }
  }

  /** Whether the turn whose answer was lost took place. If it did not, it never will: its number is used up. */
  standing({ node, epoch }: Identity, unknown: number): Standing {
    const row = this.nodes.get(node)
    if (row?.epoch !== epoch) throw new Fenced(node)
    if (row.turn === unknown - 1) row.turn = unknown + 1
    return { turn: row.turn, leases: this.#leasesOf(node) }
  }

  turn({ node, epoch }: Identity, turn: Turn): Map<string, Grant> {
    const row = this.nodes.get(node)
    if (row === undefined || row.epoch !== epoch || row.turn !== turn.number - 1) throw new Fenced(node)
    row.turn = turn.number
    for (const posting of turn.postings) this.#book(node, posting)
    for (const { accountId, amount } of turn.returns) {
      this.#account(accountId).held -= amount
      this.#addToLease(node, accountId, 0n - amount)
    }
    const grants = new Map<string, Grant>()
    for (const { accountId, waiting, left, extra } of turn.takes) {
      const account = this.accounts.get(accountId)
      if (account === undefined || !account.enabled) {
        grants.set(accountId, { kind: 'no-account' })
        continue
      }
      const free = account.posted - account.held
      const wanted = waiting.reduce((sum, one) => sum + one, 0n)
      const need = wanted < left ? 0n : wanted - left
      const most = free - need < extra * 20n && !account.unlimited ? (free - need) / 20n : extra
      let grant: Grant = { kind: 'granted', amount: nano(need + most) }
      if (!account.unlimited && free < need) {
        let pot = left + (free > 0n ? free : 0n)
        for (const one of waiting) pot -= one <= pot ? one : 0n
        // Of what remains, the node keeps what it had before, and gets nothing.
        const rest = pot < free ? pot : free
        grant = { kind: 'short', amount: nano(free > 0n ? free - rest : 0n), rest: nano(free > 0n ? rest : 0n) }
      }
      account.held += grant.amount
      this.#addToLease(node, accountId, grant.amount)
      grants.set(accountId, grant)
    }
    this.#check()
    return grants
  }

  #book(node: string, posting: Posting): void {
    const { holdId, accountId, charge, excess, request, attempts } = posting
    if (!this.costs.has(request.id)) this.costs.set(request.id, charge)
    const moves = charge !== 0n || excess !== 0n || attempts.some(({ vendorCost }) => vendorCost !== 0n)
    if (!moves || this.booked.has(holdId)) return
    this.booked.set(holdId, { requestId: request.id, accountId, charge })
    if (this.costs.get(request.id) !== charge) {
      this.breaches.push(`${request.id} is charged ${charge}, its record says ${this.costs.get(request.id)}`)
    }
    const account = this.#account(accountId)
    account.posted -= charge
    account.held -= charge
    this.#addToLease(node, accountId, 0n - charge)
  }

  #addToLease(node: string, accountId: string, amount: bigint): void {
    const leases = this.#leases.get(node) ?? new Map<string, bigint>()
    this.#leases.set(node, leases)
    leases.set(accountId, (leases.get(accountId) ?? 0n) + amount)
  }

  #leasesOf(node: string): Map<string, ReturnType<typeof nano>> {
    return new Map([...(this.#leases.get(node) ?? [])].map(([accountId, amount]) => [accountId, nano(amount)]))
  }

  #account(id: string): Account {
    const account = this.accounts.get(id)
    if (account === undefined) throw new Error(`there is no account ${id}`)
    return account
  }

  /** At every commit: no amount is below zero, what is held equals what is leased, and no money appears or vanishes. */
  #check(): void {
    const leased = new Map<string, bigint>()
    for (const [node, leases] of this.#leases) {
      for (const [accountId, amount] of leases) {
        if (amount < 0n) this.breaches.push(`${node} has a lease of ${amount} on ${accountId}`)
        leased.set(accountId, (leased.get(accountId) ?? 0n) + amount)
      }
    }
    const charged = new Map<string, bigint>()
    for (const { accountId, charge } of this.booked.values()) {
      charged.set(accountId, (charged.get(accountId) ?? 0n) + charge)
    }
    for (const [id, { posted, held, unlimited, credited }] of this.accounts) {
      if (held < 0n) this.breaches.push(`${id} holds ${held}`)
      if (!unlimited && posted - held < 0n) this.breaches.push(`${id} is at ${posted} with ${held} held`)
      if (held !== (leased.get(id) ?? 0n)) this.breaches.push(`${id} holds ${held}, leased are ${leased.get(id)}`)
      const expected = credited - (charged.get(id) ?? 0n)
      if (posted !== expected) this.breaches.push(`${id} is at ${posted}, its postings say ${expected}`)
    }
  }
}
