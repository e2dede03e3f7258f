import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, attemptOf, fundedAccount, holdOf, requestOf, settlementOf } from '../../test/support/ledger.ts'
import { type Nano, nano } from '../base/money.ts'
import { accountById, credit } from './accounts.ts'
import { checkLedger } from './check.ts'
import { takeHold } from './holds.ts'
import { recoverHolds, settleHold, voidHold } from './ledger.ts'
import type { Store } from './open.ts'

// Few holds and many steps, so that most steps meet one that is open, ended, or being ended at that moment.
const holds = 60
const stepsInRun = 250
const runs = 4
const start = 500n

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('take'), hold: fc.nat(holds), amount: fc.bigInt(0n, 60n) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('settle'), hold: fc.nat(holds), amount: fc.bigInt(0n, 80n) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('void'), hold: fc.nat(holds), amount: fc.bigInt(0n, 9n) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('credit'), hold: fc.nat(5), amount: fc.bigInt(-90n, 90n) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('recover'), hold: fc.nat(9), amount: fc.constant(0n) }) },
)
type Step = { kind: string; hold: number; amount: bigint }
/** Steps that run at the same time. */
const batch = fc.array(step, { minLength: 1, maxLength: 12 })
const history = fc
  .array(batch, { minLength: stepsInRun, maxLength: stepsInRun })
  .map((batches) => takeSteps(batches, stepsInRun))

function takeSteps(batches: Step[][], count: number): Step[][] {
  let left = count
  return batches.map((steps) => steps.slice(0, left - (left -= Math.min(left, steps.length)))).filter((b) => b.length)
}

/** What the answers claim has happened, kept apart from the database. */
type Told = { posted: bigint; tried: Set<string>; taken: Map<string, bigint>; ended: Map<string, number> }

async function perform(store: Store, told: Told, run: number, at: number, { kind, hold, amount }: Step): Promise<void> {
  const id = `r${run}h${hold}`
  const unique = `${run}.${at}`
  const attempts = [attemptOf(unique, amount / 2n, { delivered: amount % 3n !== 0n })]
  const end = () => told.ended.set(id, (told.ended.get(id) ?? 0) + 1)
  switch (kind) {
    case 'take': {
      // Ids are made by us and used once. A second use beside an ending of the first would deadlock on PostgreSQL.
      if (told.tried.has(id)) return
      told.tried.add(id)
      const taken = await takeHold(store, holdOf(id, amount, { deadline: 1_000 + hold }))
      if (taken.outcome === 'held') told.taken.set(id, amount)
      return
    }
    case 'settle': {
      const settled = await settleHold(store, settlementOf(id, amount, { request: requestOf(unique), attempts }))
      if (settled.outcome !== 'settled') return
      told.posted -= settled.charge
      end()
      return
    }
    case 'void': {
      const voided = await voidHold(store, { hold: { id, accountId }, request: requestOf(unique), attempts })
      if (voided.outcome === 'voided') end()
      return
    }
    case 'credit': {
      if (amount === 0n) return
      const credited = await credit(store, { accountId, amount: nano(amount), source: 'cash:manual', actor: 'test' })
      if (credited.outcome === 'credited') told.posted += amount
      return
    }
    default:
      for (const recovered of (await recoverHolds(store, { now: 1_000 + hold })).voided) {
        told.ended.set(recovered, (told.ended.get(recovered) ?? 0) + 1)
      }
  }
}

eachEngine('random interleavings of 1,000 steps', (open) => {
  test('concurrent random steps neither lose nor duplicate any money', async () => {
    const store = await open({ clock: { now: () => 1 } })
    await fundedAccount(store, { amount: start })
    const told: Told = { posted: start, tried: new Set(), taken: new Map(), ended: new Map() }
    let run = 0
    const property = fc.asyncProperty(history, async (batches) => {
      run += 1
      let at = 0
      // Every run starts with the same money: one that the last run left poor would take few holds.
      await perform(store, told, run, at++, { kind: 'credit', hold: 0, amount: start - told.posted })
      for (const steps of batches) await Promise.all(steps.map((one) => perform(store, told, run, at++, one)))

      const account = await accountById(store.db, accountId)
      const open = [...told.taken].filter(([id]) => !told.ended.has(id))
      expect(account?.posted).toBe(told.posted as Nano)
      expect(account?.held).toBe(open.reduce((sum, [, amount]) => sum + amount, 0n) as Nano)
      expect([...told.ended.values()].filter((times) => times !== 1)).toEqual([])
      expect(await checkLedger(store)).toEqual([])
      // The next run starts with nothing open.
      for (const [id] of open)
        await perform(store, told, run, at++, { kind: 'void', hold: Number(id.split('h')[1]), amount: 0n })
    })
    await fc.assert(property, { numRuns: runs, endOnFailure: true })
    // The steps did meet: many holds were taken and ended, by chance and not by the clean-up alone.
    expect(told.ended.size).toBeGreaterThan(60)
  }, 600_000)
})
