import { describe, expect, test } from 'bun:test'
import { sql } from 'kysely'
import { eachEngine } from '../../test/support/engines.ts'
import { attemptOf, fundedAccount, holdOf, requestOf, settlementOf } from '../../test/support/ledger.ts'
import { sharedPostgres } from '../../test/support/postgres.ts'
import { nano } from '../base/money.ts'
import { addAdminKey } from './admin-keys.ts'
import { takeHold } from './holds.ts'
import { insertKey, keyByDigest } from './keys.ts'
import { settleHold, voidHold } from './ledger.ts'
import { openStore, type Store } from './open.ts'
import { kindsByName } from './rows.ts'
import { columnKinds, type Schema } from './schema.ts'
import { writeSetting } from './settings.ts'
import { sumUsage } from './usage.ts'

const now = 1_800_000_000_123
const beyondDouble = 9_007_199_254_740_993n // 2^53 + 1

/** Touches every table and kind of column. */
async function write(store: Store): Promise<void> {
  await fundedAccount(store, { amount: beyondDouble })
  await insertKey(store, {
    id: 'key_a',
    accountId: 'acc_a',
    digest: 'aa'.repeat(32),
    hint: 'wxyz',
    actor: 'test',
    models: ['gpt-*', '模型'],
    limits: { requestsPerMinute: 60 },
    cap: { amount: nano(5n), period: 'day' },
    expiresAt: now + 1,
    metadata: { team: 'a "quoted" one' },
  })
  await insertKey(store, { id: 'key_b', accountId: 'acc_a', digest: 'bb', hint: 'abcd', actor: 'test' })
  await addAdminKey(store, 'cc')
  await writeSetting(store.db, 'first-account', '42')
  for (const id of ['one', 'two', 'three']) await takeHold(store, holdOf(id, 100n, { deadline: now + 1 }))
  const failed = attemptOf('failed', 7n, { delivered: false, status: 500, vendor: 'ark' })
  await settleHold(store, settlementOf('one', 120n, { attempts: [failed, attemptOf('done', 80n)] }))
  await voidHold(store, { hold: { id: 'two', accountId: 'acc_a' }, request: requestOf('two', { streamed: true }) })
}

/** Reads everything through the mapping alone, and leaves out random ids. */
async function readAll(store: Store): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {}
  for (const table of Object.keys(columnKinds) as (keyof Schema)[]) {
    const rows = await store.db.selectFrom(table).selectAll().execute()
    all[table] = rows
      .map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [name, isRandom(name, value) ? 'random' : value]),
        ),
      )
      .toSorted((a, b) => (show(a) < show(b) ? -1 : 1))
  }
  all['join'] = await keyByDigest(store.db, 'aa'.repeat(32))
  all['sums'] = await sumUsage(store, { scope: 'every-account' }, 'day')
  return all
}

/** A hash is random too, since it covers a random id, or one before it. */
function isRandom(name: string, value: unknown): boolean {
  return typeof value === 'string' && (name === 'hash' || /^(aud|txn)_/.test(value))
}

function show(row: object): string {
  return JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))
}

describe('the same writes on both engines', () => {
  test('both engines give back equal values of equal types', async () => {
    const server = await sharedPostgres()
    const clock = { now: () => now }
    const sqlite = await openStore({ file: ':memory:', clock })
    const postgres = await openStore({ url: await server.freshDatabase(), clock })
    await write(sqlite)
    await write(postgres)
    const fromSqlite = await readAll(sqlite)
    expect(fromSqlite).toEqual(await readAll(postgres))
    await sqlite.close()
    await postgres.close()
  }, 120_000)
})

eachEngine('the mapping of rows', (open) => {
  test('a number in an unknown column is refused', async () => {
    const { db } = await open()
    expect(sql`select 1 as mystery`.execute(db)).rejects.toThrow('mystery')
  })

  test('a count that a double cannot hold is refused', async () => {
    const { db } = await open()
    expect(sql`select ${sql.lit(beyondDouble)} as created_at`.execute(db)).rejects.toThrow('created_at')
  })
})

test('a column name cannot be money in one table and a number in another', () => {
  expect(() => kindsByName({ a: { size: 'money' }, b: { size: 'number' } })).toThrow('b.size')
  expect(() => kindsByName({ a: { size: 'text' }, b: { size: 'number' } })).not.toThrow()
})
