import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { fundedAccount } from '../../test/support/ledger.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { insertNew } from './bulk.ts'
import { copyStore, versionOf } from './copy.ts'
import { openStore, type Store } from './open.ts'
import { readSetting, writeSetting } from './settings.ts'

test('what another connection writes changes the version of a file, and what its own writes does not', async () => {
  const file = join(temporaryFolder('turnpike-copy-'), 'turnpike.sqlite')
  const [store, other] = [await openStore({ file }), await openStore({ file })]
  const before = await versionOf(store)
  await writeSetting(store.db, 'a', '1')
  expect(await versionOf(store)).toBe(before)
  await writeSetting(other.db, 'a', '2')
  expect(await versionOf(store)).not.toBe(before)
  await Promise.all([store.close(), other.close()])
})

const settingsOf = (store: Store) => store.db.selectFrom('setting').selectAll().orderBy('name').execute()

test('every row is copied, of a table with many rows and of one with large ones', async () => {
  const [from, to] = [await openStore({ file: ':memory:' }), await openStore({ file: ':memory:' })]
  const large = 'x'.repeat(1_500_000)
  const rows = Array.from({ length: 2_500 }, (_, at) => ({ name: `setting ${at}`, value: at < 4 ? large : String(at) }))
  await from.transaction((tx) => insertNew(tx, 'setting', rows))
  const written = await settingsOf(from)
  expect(await copyStore(from, to)).toMatchObject({ setting: written.length })
  expect(await settingsOf(to)).toEqual(written)
  await Promise.all([from.close(), to.close()])
})

test('nothing is copied into a database that has accounts or rows of its own', async () => {
  const [from, to] = [await openStore({ file: ':memory:' }), await openStore({ file: ':memory:' })]
  await fundedAccount(from)
  await writeSetting(from.db, 'name', 'theirs')
  await writeSetting(to.db, 'name', 'ours')
  const refused = async () => String(await thrownBy(copyStore(from, to)))
  expect(await refused()).toContain('the database already has 1 of the rows of "setting"')
  expect(await to.db.selectFrom('account').selectAll().execute()).toEqual([])
  expect(await readSetting(to.db, 'name')).toBe('ours')
  await fundedAccount(to, { id: 'acc_b' })
  expect(await refused()).toContain('the database already has accounts')
  await Promise.all([from.close(), to.close()])
})
