import { expect, test } from 'bun:test'
import { noFatal } from '../test/support/fatal.ts'
import { createSparseReserve } from '../test/support/journal-room.ts'
import { accountId, fundedAccount } from '../test/support/ledger.ts'
import { temporaryFolder } from '../test/support/temporary-folder.ts'
import { systemClock } from './base/clock.ts'
import { Closing } from './base/closing.ts'
import { silentLog } from './base/log.ts'
import { nano } from './base/money.ts'
import { openBooks, type BooksOptions } from './books.ts'
import { databaseFile } from './config/environment.ts'
import { nodeIdentity } from './config/node-identity.ts'
import { accountById } from './store/accounts.ts'
import { openStore } from './store/open.ts'
import { openNode } from './store/turns.ts'

/** A folder as a copy of a running gateway is restored: the database has leases, and the journal was left out. */
async function restored(): Promise<string> {
  const dataFolder = temporaryFolder('books')
  createSparseReserve(dataFolder)
  const store = await openStore({ file: databaseFile({ dataFolder }) })
  const [node, amount] = [nodeIdentity(dataFolder), nano(40n)]
  await fundedAccount(store, { amount: 100n })
  await openNode(store, node, [])
  await store.db.insertInto('lease').values({ node, account_id: accountId, amount }).execute()
  await store.db.updateTable('account').set({ held: amount }).where('id', '=', accountId).execute()
  await store.close()
  return dataFolder
}

test.each(['leased', 'strict'] as const)(
  'a %s start gives back what a process without a journal had leased, and says so',
  async (mode) => {
    const said: unknown[] = []
    const closing = new Closing(['tidying', 'billing', 'store', 'lock'])
    const opening = await openBooks({
      environment: { dataFolder: await restored() } as BooksOptions['environment'],
      settings: { billing: { mode, sync: 'interval' } },
      clock: systemClock,
      log: { ...silentLog, error: (_fields: unknown, words: unknown) => void said.push(words) },
      tally: { ended() {} },
      fatal: noFatal,
      closing,
    })
    try {
      const { store } = await opening.finish()
      expect(await accountById(store.db, accountId)).toMatchObject({ posted: nano(100n), held: nano(0n) })
      expect(said).toEqual([expect.stringContaining('the journal of the last process is gone')])
    } finally {
      await closing.close()
    }
  },
)
