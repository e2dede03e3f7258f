import { expect, test } from 'bun:test'
import { pico } from '../../src/base/money.ts'
import { priceOf } from '../../src/billing/price.ts'
import type { PriceList } from '../../src/capabilities/usage.ts'
import { openNode, takeTurn } from '../../src/store/turns.ts'
import { Random } from '../simulation/random.ts'
import { eachEngine } from '../support/engines.ts'
import { accountId, balances, fundedAccount } from '../support/ledger.ts'
import { postingOf, takeOf, turnOf } from '../support/turns.ts'

// M-19. Prices, computed and booked in the ledger, against decimal arithmetic in limbs of plain numbers, which shares
// no code with the product and uses no BigInt. All of a million are priced; the ledger books each of the first
// thousands in rows of its own. A million rows would take a minute on SQLite and five on PostgreSQL, and all that a
// ledger does with an amount is add it.

const usages = 1_000_000
const bookedOn = { sqlite: 20_000, postgres: 5_000 } as const
const perTurn = 500

const units = ['input', 'cachedInput', 'cacheWrite', 'output', 'request'] as const
type Used = Record<(typeof units)[number], number>

const limb = 10_000
const limbs = 8

/** A sum of decimals, in limbs of four digits from the lowest: exact as long as no limb grows beyond 2^53. */
class Paper {
  readonly #sum = new Float64Array(limbs)

  /** Nano-dollars of one request, from pico-dollars a unit: its last three digits are rounded away, half up. */
  addRequest(used: Used, rates: Readonly<Record<string, readonly number[]>>): void {
    const cost = new Float64Array(limbs)
    for (const unit of units) {
      const rate = rates[unit] ?? []
      for (let at = 0; at < rate.length; at++) cost[at] = (cost[at] ?? 0) + used[unit] * (rate[at] ?? 0)
    }
    cost[0] = (cost[0] ?? 0) + 500
    carry(cost)
    cost[0] = (cost[0] ?? 0) - ((cost[0] ?? 0) % 1_000)
    for (let at = 0; at < limbs; at++) this.#sum[at] = (this.#sum[at] ?? 0) + (cost[at] ?? 0)
  }

  toString(): string {
    const digits = this.#sum.slice()
    carry(digits)
    const text = [...digits].toReversed().map((value) => String(value).padStart(4, '0'))
    return text
      .join('')
      .slice(0, -3)
      .replace(/^0+(?=\d)/, '')
  }
}

function carry(digits: Float64Array): void {
  for (let at = 0; at + 1 < limbs; at++) {
    const value = digits[at] ?? 0
    const low = value % limb
    digits[at] = low
    digits[at + 1] = (digits[at + 1] ?? 0) + (value - low) / limb
  }
}

function limbsOf(rate: number): number[] {
  const split: number[] = []
  for (let rest = rate; rest > 0; rest = Math.floor(rest / limb)) split.push(rest % limb)
  return split
}

/** Lists as vendors have them, down to fractions of a nano-dollar a token. */
function drawLists(random: Random) {
  return Array.from({ length: 64 }, () => {
    const rates = Object.fromEntries(units.map((unit) => [unit, random.between(0, 3 ** random.between(1, 20))]))
    const list: PriceList = {
      version: 'v',
      rates: Object.fromEntries(units.map((unit) => [unit, pico(BigInt(rates[unit] ?? 0))])),
      tiers: [],
      perImage: {},
      perSecond: {},
      perVideo: {},
      perVideoToken: {},
    }
    return { list, paper: Object.fromEntries(units.map((unit) => [unit, limbsOf(rates[unit] ?? 0)])) }
  })
}

/** The same usages for the same seed. */
function* drawUsages(seed: number, count: number) {
  const random = new Random(seed)
  const lists = drawLists(random)
  const used: Used = { input: 0, cachedInput: 0, cacheWrite: 0, output: 0, request: 1 }
  for (let at = 0; at < count; at++) {
    used.input = random.between(0, 200_000)
    used.cachedInput = random.between(0, 9)
    used.cacheWrite = random.between(0, 1_000)
    used.output = random.between(0, 64_000)
    yield { used, ...random.pick(lists) }
  }
}

const seed = Number(process.env['SIMULATION_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

test(`M-19: ${usages} random usages are priced exactly as by decimal arithmetic`, () => {
  const paper = new Paper()
  let total = 0n
  let at = 0
  for (const { used, list, paper: rates } of drawUsages(seed, usages)) {
    total += priceOf(used, list)
    paper.addRequest(used, rates)
    if (++at % 10_000 === 0)
      expect({ seed, at, total: total.toString() }).toEqual({ seed, at, total: paper.toString() })
  }
  expect(total).toBeGreaterThan(0n)
}, 120_000)

eachEngine('M-19: the ledger', (open, _, engine) => {
  const booked = bookedOn[engine]

  test(`${booked} random usages are booked exactly as decimal arithmetic adds them up`, async () => {
    const store = await open()
    const fund = 10n ** 15n
    await fundedAccount(store, { amount: fund })
    const { epoch } = await openNode(store, 'node_a', [])
    const identity = { node: 'node_a', epoch }
    let turn = 1
    await takeTurn(store, identity, turnOf(turn, { takes: [takeOf(fund)] }))
    const paper = new Paper()
    let postings: ReturnType<typeof postingOf>[] = []
    let at = 0
    for (const { used, list, paper: rates } of drawUsages(seed, booked)) {
      postings.push(postingOf(String(++at), priceOf(used, list), { attempts: [] }))
      paper.addRequest(used, rates)
      if (postings.length < perTurn) continue
      await takeTurn(store, identity, turnOf(++turn, { postings }))
      postings = []
    }
    const spent = paper.toString()
    const account = store.db.selectFrom('account').select('posted').where('id', '=', accountId)
    const { posted } = await account.executeTakeFirstOrThrow()
    const { 'cust:acc_a': customer = 0n, 'revenue:gpt-x': revenue = 0n } = await balances(store)
    expect({
      seed,
      posted: String(fund - posted),
      customer: String(fund - customer),
      revenue: String(revenue),
    }).toEqual({
      seed,
      posted: spent,
      customer: spent,
      revenue: spent,
    })
  }, 120_000)
})
