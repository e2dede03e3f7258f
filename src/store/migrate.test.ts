import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Kysely, sql } from 'kysely'
import { Client, type PoolClient } from 'pg'
import { eachEngine } from '../../test/support/engines.ts'
import { until } from '../../test/support/gateway.ts'
import { olderDatabase } from '../../test/support/older-database.ts'
import { coldStartMs, sharedPostgres } from '../../test/support/postgres.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { isAway } from './faults.ts'
import { migrate } from './migrate.ts'
import { openStore } from './open.ts'
import { PooledDialect } from './postgres.ts'
import { columnKinds, type Schema } from './schema.ts'

let databaseUrl: string
let writer: Client
let bystander: Client

async function withoutReports(): Promise<string> {
  const url = await (await sharedPostgres()).emptyDatabase()
  await (await olderDatabase({ url }, '0004-reports')).destroy()
  return url
}

beforeAll(async () => {
  databaseUrl = await withoutReports()
  writer = new Client({ connectionString: databaseUrl })
  bystander = new Client({ connectionString: databaseUrl })
  await Promise.all([writer.connect(), bystander.connect()])
}, coldStartMs)
afterAll(async () => {
  await Promise.all([writer.end(), bystander.end()])
  await (await sharedPostgres()).dropDatabase(databaseUrl)
})

/** Whether a migration is waiting for a table at this moment. */
async function isInQueue(): Promise<boolean> {
  const { rowCount } = await bystander.query(
    "select 1 from pg_stat_activity where application_name = 'turnpike-migration' and wait_event_type = 'Lock'",
  )
  return rowCount !== 0
}

/** Locks the table as a request does, with the statement timeout of one. */
async function write(): Promise<void> {
  await bystander.query('begin')
  await bystander.query("set local statement_timeout = '1s'")
  await bystander.query('lock table request in row exclusive mode')
  await bystander.query('commit')
}

// F-10
test(
  'a migration waits for a table in use without blocking other writers',
  async () => {
    await writer.query('begin')
    await writer.query('lock table request in row exclusive mode')
    // As behind PgBouncer, which ignores what a connection begins with.
    const opening = openStore({ url: `${databaseUrl}?lock_timeout=0` })
    try {
      let queued = 0
      await until(async () => {
        if (await isInQueue()) queued++
        await write()
        // The migration had released its locks for the writes behind it, and came back.
        return queued === 3
      })
    } finally {
      await writer.query('commit')
      const store = await opening
      await store.close()
    }
    const { rows } = await bystander.query<{ name: string }>('select name from kysely_migration order by name')
    expect(rows.map(({ name }) => name)).toContain('0005-tasks')
  },
  coldStartMs,
)

/**
 * A pool like PgBouncer's in its transaction mode: every transaction, and every statement outside one, in the next
 * session.
 */
async function poolOfTransactions(url: string) {
  const sessions = Array.from({ length: 3 }, () => new Client({ connectionString: url }))
  await Promise.all(sessions.map((session) => session.connect()))
  let isInside = false
  const query = (text: string, values?: unknown[]) => {
    if (!isInside) sessions.push(...sessions.splice(0, 1))
    if (/^(?:begin|start)/.test(text)) isInside = true
    if (/^(?:commit|rollback)/.test(text)) isInside = false
    return sessions[0]?.query(text, values)
  }
  const client = { query, release() {} } as unknown as PoolClient
  return {
    connect: () => Promise.resolve(client),
    end: async () => void (await Promise.all(sessions.map((session) => session.end()))),
    options: {},
  }
}

test(
  'several nodes migrate an empty database through a pooler that gives every transaction another session',
  async () => {
    const url = await (await sharedPostgres()).emptyDatabase()
    const open = async () => new Kysely<Schema>({ dialect: new PooledDialect({ pool: await poolOfTransactions(url) }) })
    const nodes = await Promise.all([open(), open(), open()])
    await Promise.all(nodes.map((db) => migrate(db, 'postgres')))
    for (const db of nodes) {
      const { rows } = await sql`select 1 from pg_locks join pg_database on pg_database.oid = database
        where locktype = 'advisory' and datname = current_database()`.execute(db)
      expect(rows).toEqual([])
      await db.destroy()
    }
    await (await sharedPostgres()).dropDatabase(url)
  },
  coldStartMs,
)

test(
  'why nothing can be made in an empty database is said, and one that takes no writes for now is waited for',
  async () => {
    const url = await (await sharedPostgres()).emptyDatabase()
    const thrown = await thrownBy(openStore({ url: `${url}?options=-c%20default_transaction_read_only%3Don` }))
    expect(String(thrown)).toContain('cannot execute CREATE TABLE in a read-only transaction')
    expect(isAway(thrown)).toBe(true)
    await (await sharedPostgres()).dropDatabase(url)
  },
  coldStartMs,
)

test.each([
  ['request_created', 'on request (created_at)'],
  ['txn_credit', "on txn (chain, seq) where kind = 'credit'"],
])(
  'an index that an operator built in advance is kept as it is: %s',
  async (name, what) => {
    const url = await withoutReports()
    const operator = new Client({ connectionString: url })
    await operator.connect()
    try {
      await operator.query(`create index concurrently ${name} ${what}`)
      const oid = `select '${name}'::regclass::oid as oid`
      const { rows: built } = await operator.query<{ oid: number }>(oid)
      await (await openStore({ url })).close()
      expect((await operator.query<{ oid: number }>(oid)).rows).toEqual(built)
    } finally {
      await operator.end()
      await (await sharedPostgres()).dropDatabase(url)
    }
  },
  coldStartMs,
)

/** The engines give numbers of these columns in different types. */
const asText = (row: object) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, String(value)]))

eachEngine('a database of the first version', (open, place) => {
  test('its sums of hours become sums of days, and its postings are counted as those without a chain', async () => {
    const at = await place('empty')
    const db = await olderDatabase(at, '0003-chains')
    const [hourMs, dayMs] = [3_600_000, 86_400_000]
    const whose = { account_id: 'a', key_id: 'k', model: 'm', capability: 'chat', vendor: 'v' }
    const tables = await db.introspection.getTables()
    const columns = tables.find(({ name }) => name === 'usage_hour')?.columns.map(({ name }) => name) ?? []
    const sums = columns.filter((column) => column !== 'hour' && !Object.hasOwn(whose, column))
    expect(sums).toContain('video_seconds')
    // A column that came later has no sums from before it.
    const later = Object.fromEntries(
      Object.keys(columnKinds.usage_day).flatMap((column) => (columns.includes(column) ? [] : [[column, 0]])),
    )
    // Another number in every column, so that none can be taken for another.
    const summed = (times: number) => Object.fromEntries(sums.map((column, index) => [column, times * (index + 1)]))
    const hours = [20_000 * dayMs, 20_000 * dayMs + 23 * hourMs, 20_001 * dayMs]
    await db
      .insertInto('usage_hour')
      .values(hours.map((hour) => ({ hour, ...whose, ...summed(1) })))
      .execute()
    const posting = { kind: 'credit', basis: 'manual', created_at: 1 }
    await db
      .insertInto('txn')
      .values(['txn_1', 'txn_2'].map((id) => ({ id, ...posting })))
      .execute()
    await db.destroy()

    const { db: migrated } = await open({ at, books: 'unchecked' })
    const days = await migrated.withoutPlugins().selectFrom('usage_day').selectAll().orderBy('hour').execute()
    const expected = [
      { hour: 20_000 * dayMs, ...whose, ...summed(2), ...later },
      { hour: 20_001 * dayMs, ...whose, ...summed(1), ...later },
    ]
    expect(days.map(asText)).toEqual(expected.map(asText))
    const chains = await migrated.selectFrom('chain').select(['id', 'seq']).execute()
    expect(chains.map(asText)).toEqual([{ id: '', seq: '2' }])
  })
})
