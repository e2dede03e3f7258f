import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'kysely'
import { memoryDisk } from '../../../test/support/memory-disk.ts'
import { noFatal } from '../../../test/support/fatal.ts'
import { fundedAccount } from '../../../test/support/ledger.ts'
import { sharedPostgres } from '../../../test/support/postgres.ts'
import { tapPostgres } from '../../../test/support/tapped-postgres.ts'
import { endingOf, orderOf } from '../../../test/simulation/request.ts'
import { systemClock, systemTimers } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { nano } from '../../base/money.ts'
import { accountById } from '../../store/accounts.ts'
import { checkLedger } from '../../store/check.ts'
import { openNotices, type Notices } from '../../store/notices.ts'
import { openStore, type Store } from '../../store/open.ts'
import type { Bank } from './bank.ts'
import { makeSharedBank } from './shared-bank.ts'
import { openLeasedBilling, type LeasedBilling } from './leased.ts'

let url: string
let store: Store
let nodes: { billing: LeasedBilling; bank: Bank }[] = []

beforeAll(async () => {
  url = await (await sharedPostgres()).freshDatabase()
  store = await openStore({ url })
}, 120_000)

afterEach(async () => {
  for (const { billing, bank } of nodes) {
    await billing.close()
    await bank.close()
  }
  nodes = []
  expect(await checkLedger(store)).toEqual([])
})

async function startNode(node: string): Promise<LeasedBilling> {
  const parts = { node, disk: memoryDisk(), clock: systemClock, timers: systemTimers, log: silentLog, fatal: noFatal }
  const bank = makeSharedBank(store, url)
  const billing = await openLeasedBilling({ ...parts, bank, sync: 'interval' })
  nodes.push({ billing, bank })
  return billing
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Waits until the database itself reports that many listening connections. */
async function listening(count: number): Promise<void> {
  await until(async () => {
    const { rows } = await sql<{ rows: number }>`
      select count(*) as rows from pg_stat_activity where application_name = 'turnpike-notices'
        and query like 'listen %' and datname = current_database()`.execute(store.db)
    return (rows[0]?.rows ?? 0) >= count
  })
}

describe('two nodes on one PostgreSQL', () => {
  // A recall is waited for half a second at most, far less than a node takes to give back a lease by itself.
  test('the unused lease of one node is recalled for a request on the other', async () => {
    const accountId = await fundedAccount(store, { id: 'acc_recall', amount: 1_000n })
    const [a, b] = [await startNode('node_a'), await startNode('node_b')]
    await listening(2)
    const taken = await a.take(orderOf('req_1', accountId, 1_000n))
    if (taken.kind !== 'hold') throw new Error('not held')
    await taken.hold.release(endingOf([], 0n))
    const other = await b.take(orderOf('req_2', accountId, 1_000n))
    expect(other.kind).toBe('hold')
    if (other.kind === 'hold') await other.hold.release(endingOf([], 0n))
  }, 120_000)

  test('a lease in use is not recalled, and a request on the other node is refused', async () => {
    const accountId = await fundedAccount(store, { id: 'acc_used', amount: 1_000n })
    const [a, b] = [await startNode('node_a'), await startNode('node_b')]
    await listening(2)
    const taken = await a.take(orderOf('req_3', accountId, 900n))
    if (taken.kind !== 'hold') throw new Error('not held')
    const other = await b.take(orderOf('req_4', accountId, 101n))
    expect(other).toMatchObject({ kind: 'no-funds' })
    await taken.hold.release(endingOf([], 0n))
  }, 120_000)

  test('a request that the balance does not cover keeps none of it from requests on the other node', async () => {
    const accountId = await fundedAccount(store, { id: 'acc_short', amount: 1_000n })
    const [a, b] = [await startNode('node_a'), await startNode('node_b')]
    await listening(2)
    for (let round = 1; round <= 3; round++) {
      const uncovered = a.take(orderOf(`req_uncovered_${round}`, accountId, 1_001n))
      const covered = await b.take(orderOf(`req_covered_${round}`, accountId, 1_000n))
      if (covered.kind !== 'hold') throw new Error('refused although the balance covers it')
      await covered.hold.release(endingOf([], 0n))
      expect(await uncovered).toEqual({ kind: 'no-funds', available: nano(1_000n) })
      expect(await accountById(store.db, accountId)).toMatchObject({ posted: nano(1_000n), held: nano(0n) })
    }
  }, 120_000)
})

const soon = { patienceMs: 1_000, reconnectMs: 10 }

async function sendUntilHeard(sender: Notices, text: string, heard: readonly string[]): Promise<void> {
  await until(async () => {
    await sender.send(text).catch(() => {})
    return heard.includes(text)
  })
}

/** And not one more for every time that one was lost. */
async function oneConnectionEach(): Promise<void> {
  await until(async () => {
    const { rows } = await sql<{ rows: number }>`select count(*) as rows from pg_stat_activity
      where application_name = 'turnpike-notices' and datname = current_database()`.execute(store.db)
    return rows[0]?.rows === 2
  })
}

describe('notices', () => {
  test('a notice reaches its listener, also after the connection was lost', async () => {
    const heard: string[] = []
    const sender = openNotices(url, 'test_notices', () => {}, soon)
    const listener = openNotices(url, 'test_notices', (text) => heard.push(text), soon)
    await listening(2)
    const send = (text: string) => sendUntilHeard(sender, text, heard)
    await send('first')
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'turnpike-notices' and datname = current_database()`.execute(store.db.withoutPlugins())
    await send('second')
    await oneConnectionEach()
    await Promise.all([sender.close(), listener.close()])
  }, 120_000)

  test('a connection that died silently is noticed by the first notice without an answer, and replaced', async () => {
    const heard: string[] = []
    const tapped = await tapPostgres(url)
    const sender = openNotices(tapped.url, 'test_silence', () => {}, { patienceMs: 300, reconnectMs: 10 })
    const listener = openNotices(url, 'test_silence', (text) => heard.push(text), soon)
    await listening(2)
    await sendUntilHeard(sender, 'before', heard)
    let failure: unknown
    // More than once where the machine was so busy that the sender is just replacing its connection.
    await until(async () => {
      tapped.fallSilent()
      failure = await sender.send('lost').catch(String)
      return failure !== undefined
    })
    expect(failure).toContain('timeout')
    await sendUntilHeard(sender, 'after', heard)
    expect(heard).not.toContain('lost')
    await oneConnectionEach()
    await Promise.all([sender.close(), listener.close()])
    await tapped.close()
  }, 120_000)

  test('a notice to an unreachable server is dropped silently, and closing does not wait for it', async () => {
    const notices = openNotices('postgres://nobody@127.0.0.1:1/nothing', 'test_notices', () => {})
    await notices.send('into the dark')
    await notices.close()
  })
})
