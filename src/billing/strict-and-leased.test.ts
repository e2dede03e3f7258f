import { expect, test } from 'bun:test'
import { memoryDisk } from '../../test/support/memory-disk.ts'
import { noFatal } from '../../test/support/fatal.ts'
import { eachEngine } from '../../test/support/engines.ts'
import { balances, fundedAccount } from '../../test/support/ledger.ts'
import { Random } from '../../test/simulation/random.ts'
import { orderOf, sentOf } from '../../test/simulation/request.ts'
import { systemClock, systemTimers } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { nano } from '../base/money.ts'
import type { Store } from '../store/open.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Billing, Hold } from './billing.ts'
import { makeStoreBank } from './leased/bank.ts'
import { openLeasedBilling } from './leased/leased.ts'
import { makeStrictBilling } from './strict.ts'

const steps = 250
const accounts = [
  { id: 'acc_a', amount: 1_500n, unlimited: false },
  { id: 'acc_b', amount: 200n, unlimited: false },
  { id: 'acc_free', amount: 0n, unlimited: true },
]

/** Makes the same random requests for a seed, several of them open at a time. Gives what each was told. */
async function spend(billing: Billing, seed: number): Promise<string[]> {
  const random = new Random(seed)
  const told: string[] = []
  const open: { id: string; hold: Hold }[] = []
  for (let step = 0; step < steps; step++) {
    if (open.length === 0 || random.chance(0.5)) {
      const id = `req_${step}`
      const order = orderOf(id, random.pick(accounts).id, BigInt(random.between(0, 120)))
      const taken = await billing.take(order)
      told.push(`${id} ${taken.kind === 'hold' ? 'held' : `refused, ${taken.available} there`}`)
      if (taken.kind === 'hold') open.push({ id, hold: taken.hold })
      continue
    }
    const [{ id, hold } = { id: '', hold: undefined }] = open.splice(random.between(0, open.length - 1), 1)
    if (hold === undefined) throw new Error('no hold')
    const attempts = attemptsOf(random, id)
    const ending = { status: random.pick([200, 502]), streamed: random.chance(0.5), durationMs: step, attempts }
    for (const attempt of attempts) await hold.sending(sentOf(attempt.id))
    if (attempts.length === 0 || random.chance(0.2)) {
      await hold.release(ending)
      told.push(`${id} released`)
    } else {
      const price = nano(BigInt(random.between(0, 140)))
      const basis = random.pick(['vendor', 'estimated'] as const)
      const usage = { input: random.between(0, 9), output: random.between(0, 9) }
      const bearer = random.chance(0.3) ? { excessTo: 'suspense' as const } : {}
      told.push(`${id} charged ${await hold.settle({ ...ending, basis, usage, price, ...bearer })}`)
    }
  }
  for (const { hold } of open) await hold.release({ status: 499, streamed: false, durationMs: 1, attempts: [] })
  return told
}

function attemptsOf(random: Random, id: string): AttemptRecord[] {
  const count = random.pick([0, 1, 1, 2])
  return Array.from({ length: count }, (_, at) => ({
    ...sentOf(`att_${id}.${at}`),
    status: at === count - 1 ? 200 : 500,
    vendorCost: nano(BigInt(random.between(0, 60))),
    delivered: at === count - 1,
  }))
}

/** Everything that is stored, except what the two modes name differently. */
async function kept(store: Store) {
  const rows = await store.db.selectFrom('request').selectAll().orderBy('id').execute()
  return {
    accounts: await store.db.selectFrom('account').select(['id', 'posted', 'held']).orderBy('id').execute(),
    requests: rows.map((row) => ({ ...row, hold_id: null })),
    attempts: await store.db.selectFrom('attempt').selectAll().orderBy('id').execute(),
    usage: await store.db.selectFrom('usage_hour').selectAll().orderBy('account_id').orderBy('vendor').execute(),
    books: new Map(Object.entries(await balances(store))),
  }
}

eachEngine('strict and leased billing', (open) => {
  test('strict and leased billing give the same outcomes, balances and records for the same requests', async () => {
    const seed = Number(process.env['SIMULATION_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    const clock = { now: () => 1_800_000_000_000, monotonic: () => systemClock.monotonic() }
    const [strictStore, leasedStore] = [await open({ clock }), await open({ clock })]
    for (const store of [strictStore, leasedStore]) for (const account of accounts) await fundedAccount(store, account)

    const strict = await spend(makeStrictBilling({ store: strictStore, node: 'node_a', log: silentLog }), seed)
    const parts = {
      node: 'node_a',
      bank: makeStoreBank(leasedStore),
      disk: memoryDisk(),
      timers: systemTimers,
      log: silentLog,
    }
    const leased = await openLeasedBilling({ ...parts, clock: systemClock, sync: 'interval', fatal: noFatal })
    try {
      expect(await spend(leased, seed)).toEqual(strict)
      await leased.close()
      expect(await kept(leasedStore)).toEqual(await kept(strictStore))
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error })
    }
    expect(strict.some((line) => line.includes('refused'))).toBe(true)
  }, 120_000)
})
