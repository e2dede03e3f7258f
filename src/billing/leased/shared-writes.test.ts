import { afterEach, beforeEach, expect, test } from 'bun:test'
import { endingOf, orderOf, saleOf, sentOf } from '../../../test/simulation/request.ts'
import { noFatal } from '../../../test/support/fatal.ts'
import { accountId, fundedAccount } from '../../../test/support/ledger.ts'
import { handTimers } from '../../../test/support/hand-timers.ts'
import { memoryDisk } from '../../../test/support/memory-disk.ts'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { accountById } from '../../store/accounts.ts'
import { openStore, type Store } from '../../store/open.ts'
import type { Hold } from '../billing.ts'
import { makeStoreBank, type Bank } from './bank.ts'
import { recoverJournal } from './journal.ts'
import { openLeasedBilling, type LeasedBilling } from './leased.ts'

let store: Store
beforeEach(async () => {
  store = await openStore({ file: ':memory:' })
  await fundedAccount(store, { amount: 1_000n })
})
afterEach(() => store.close())

/** Billing that takes no turn by itself. `early`: the endings that were posted before they were durable. */
async function makeBilling() {
  const disk = memoryDisk()
  const bank = makeStoreBank(store)
  let durable: readonly string[] = []
  disk.onSync = async () => {
    durable = recoverJournal(disk).records.flatMap((record) => (record.type === 'SETTLE' ? [record.id] : []))
  }
  const early: string[] = []
  const watched: Bank = {
    ...bank,
    turn(identity, turn) {
      early.push(...turn.postings.map(({ holdId }) => holdId).filter((id) => !durable.includes(id)))
      return bank.turn(identity, turn)
    },
  }
  const parts = { bank: watched, disk, clock: systemClock, timers: handTimers(), log: silentLog, fatal: noFatal }
  return { disk, early, billing: await openLeasedBilling({ ...parts, node: 'node_a', sync: 'interval' }) }
}

async function take(billing: LeasedBilling, id: string): Promise<Hold> {
  const taken = await billing.take(orderOf(id, accountId, 10n))
  if (taken.kind !== 'hold') throw new Error(taken.kind)
  return taken.hold
}

const balance = async (): Promise<bigint | undefined> => (await accountById(store.db, accountId))?.posted

test('an ending is not posted by a turn that begins between its record and the write', async () => {
  const { billing, early } = await makeBilling()
  const hold = await take(billing, 'req_1')
  await hold.sending(sentOf('att_1'))
  const settled = hold.settle(saleOf(7n, ['att_1']))
  await billing.post()
  await settled
  expect(await balance()).toBe(993n)
  expect(early).toEqual([])
  await billing.close()
})

test('a write that fails for an attempt keeps no earlier ending from being posted', async () => {
  const { billing, disk } = await makeBilling()
  const [ended, unsent] = [await take(billing, 'req_1'), await take(billing, 'req_2')]
  await ended.sending(sentOf('att_1'))
  await ended.settle(saleOf(7n, ['att_1']))
  disk.roomBytes = -1_000_000 // the reserve does not help either
  const refused = Promise.resolve(unsent.sending(sentOf('att_2'))).catch((thrown: unknown) => thrown)
  await billing.post()
  expect(await refused).toMatchObject({ kind: 'overloaded' })
  expect(await balance()).toBe(993n)
  disk.roomBytes = Infinity
  await unsent.release(endingOf([], 0n))
  await billing.close()
})
