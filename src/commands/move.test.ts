import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { accountId, fundedAccount, holdOf } from '../../test/support/ledger.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { nano } from '../base/money.ts'
import { accountById } from '../store/accounts.ts'
import { takeHold } from '../store/holds.ts'
import { openStore, type Store } from '../store/open.ts'
import { writeSetting } from '../store/settings.ts'
import { copyChecked } from './move.ts'

let file: string
let from: Store
let to: Store

beforeEach(async () => {
  file = join(temporaryFolder('move'), 'turnpike.sqlite')
  from = await openStore({ file })
  to = await openStore({ file: ':memory:' })
  await fundedAccount(from)
})
afterEach(() => Promise.all([from.close(), to.close()]))

/** The new database, to which something happens once the copy is in it. */
function changedAfterTheCopy(change: () => Promise<unknown>): Store {
  return { ...to, snapshot: async (...asked) => change().then(() => to.snapshot(...asked)) }
}

const spoil = (store: Store) =>
  store.db
    .updateTable('account')
    .set({ held: nano(7n) })
    .where('id', '=', accountId)
    .execute()

test('a request that was cut off holds nothing in the copy', async () => {
  await takeHold(from, holdOf('a', 100n))
  expect(await copyChecked(from, to)).toMatchObject({ account: 1, hold: 1 })
  expect(await accountById(to.db, accountId)).toMatchObject({ posted: nano(1_000n), held: nano(0n) })
})

test('books are moved with the faults that they have, and a copy with other faults is refused', async () => {
  const spoilt = changedAfterTheCopy(() => spoil(to))
  expect(String(await thrownBy(copyChecked(from, spoilt)))).toMatch(/faults that the original has not.*I3 acc_a/)
  await to.close()
  to = await openStore({ file: ':memory:' })
  await spoil(from)
  expect(await copyChecked(from, to)).toMatchObject({ account: 1 })
})

test('a copy is refused when another command has changed the database meanwhile', async () => {
  const other = await openStore({ file })
  const outrun = changedAfterTheCopy(() => writeSetting(other.db, 'name', 'late'))
  expect(String(await thrownBy(copyChecked(from, outrun)))).toContain('another command changed the database')
  await other.close()
})
