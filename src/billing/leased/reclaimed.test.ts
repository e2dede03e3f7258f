import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock, type Timers } from '../../base/clock.ts'
import { newRequestId } from '../../base/ids.ts'
import { makeLog } from '../../base/log.ts'
import { nano } from '../../base/money.ts'
import { attemptOf, fundedAccount } from '../../../test/support/ledger.ts'
import { accountById } from '../../store/accounts.ts'
import { checkLedger } from '../../store/check.ts'
import { reclaimNode } from '../../store/corrections.ts'
import { openStore } from '../../store/open.ts'
import { makeStoreBank } from './bank.ts'
import { openDisk } from './disk.ts'
import { openLeasedBilling } from './leased.ts'

/** Nothing happens later: what is settled stays in the journal. */
const never: Timers = { after: () => () => {} }

test('a node that was reclaimed and comes back with its journal is refused', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-reclaimed-'))
  const store = await openStore({ file: ':memory:' })
  const accountId = await fundedAccount(store)
  const open = () =>
    openLeasedBilling({
      node: 'node_a',
      bank: makeStoreBank(store),
      disk: openDisk(folder),
      clock: systemClock,
      timers: never,
      log: makeLog({ level: 'silent' }),
      sync: 'interval',
      fatal() {},
    })
  const billing = await open()
  const taken = await billing.take({
    requestId: newRequestId(),
    accountId,
    keyId: 'key_a',
    model: 'gpt-x',
    capability: 'chat',
    amount: nano(50n),
    caps: [],
    priceVersion: 'v1',
    startedAt: 0,
    deadline: 1,
  })
  if (taken.kind !== 'hold') throw new Error(taken.kind)
  const attempt = attemptOf('a', 10n)
  const { id, channel, vendor, upstreamModel, createdAt } = attempt
  taken.hold.sending({ id, channel, vendor, upstreamModel, createdAt })
  const ending = { status: 200, streamed: false, durationMs: 1, attempts: [attempt] }
  await taken.hold.settle({ ...ending, basis: 'vendor', usage: { output: 1 }, price: nano(20n) })

  await reclaimNode(store, { node: 'node_a', silentSince: Infinity, actor: 'test' })
  expect(open()).rejects.toThrow('so it was reclaimed')
  // The customer keeps what nobody can prove any more.
  expect(await accountById(store.db, accountId)).toMatchObject({ posted: 1_000n, held: 0n })
  expect(await checkLedger(store)).toEqual([])
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})
