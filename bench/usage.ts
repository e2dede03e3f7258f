import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CompiledQuery, Kysely, type KyselyPlugin, type RootOperationNode, sql } from 'kysely'
import { openStore, type Engine, type Store } from '../src/store/open.ts'
import { openPostgres } from '../src/store/postgres.ts'
import { summedColumns } from '../src/store/rollups.ts'
import type { Queries, Schema } from '../src/store/schema.ts'
import { listRequests, requestById } from '../src/store/request-lists.ts'
import { spentSince, sumUsage, type UsageFilter } from '../src/store/usage.ts'
import { startPostgres } from '../test/support/postgres.ts'

/**
 * Measures how long the queries of the operator's API and of `/v1/usage` take on a full database and, with `--plans`,
 * shows how each engine runs them: `npx bun bench/usage.ts [--rows 1000000] [--days 90] [--engine sqlite|postgres]
 * [--plans]`.
 *
 * A hundred accounts have two keys each, and each key uses three models at every hour of the day and night: about the
 * case in which hourly sums save the least.
 */
const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    days: { type: 'string', default: '90' },
    engine: { type: 'string' },
    plans: { type: 'boolean', default: false },
  },
})
const rows = Number(values.rows)
const days = Number(values.days)
const accounts = 100
const dayMs = 86_400_000
const end = Math.floor(Date.UTC(2027, 0, 1) / dayMs) * dayMs
const begin = end - days * dayMs
const rounds = 7
const rowsPerInsert = 250_000

if (values.engine !== 'postgres') await onSqlite()
if (values.engine !== 'sqlite') await onPostgres()

async function onSqlite(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-usage-'))
  try {
    const file = join(folder, 'turnpike.sqlite')
    const empty = await openStore({ file })
    await sql`PRAGMA cache_size = -2000000`.execute(empty.db.withoutPlugins())
    await sql`PRAGMA synchronous = OFF`.execute(empty.db.withoutPlugins())
    await fill(empty.db.withoutPlugins(), 'sqlite')
    await sql`PRAGMA wal_checkpoint(TRUNCATE)`.execute(empty.db.withoutPlugins())
    await empty.close()
    // Opened again, with the settings of a gateway.
    const store = await openStore({ file })
    console.log(`\nSQLite, ${rows} requests, ${megabytes(statSync(file).size)} MB`)
    await measure(store)
    await store.close()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function onPostgres(): Promise<void> {
  const server = await startPostgres({ fsync: false })
  try {
    const url = await server.freshDatabase()
    // The pool of migrations, because filling takes longer than a request's statement may.
    const filling = new Kysely<Schema>({ dialect: openPostgres(url, 'migration') })
    await fill(filling, 'postgres')
    await filling.destroy()
    const store = await openStore({ url })
    const { rows: sizes } = await sql<{ bytes: string }>`
      select cast(pg_database_size(current_database()) as text) as bytes`.execute(store.db.withoutPlugins())
    console.log(`\nPostgreSQL, ${rows} requests, ${megabytes(Number(sizes[0]?.bytes))} MB`)
    await measure(store)
    await store.close()
  } finally {
    await server.stop()
  }
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024)
}

/** Inserts rows as settlements would leave them; the database itself makes them. */
async function fill(db: Queries, engine: Engine): Promise<void> {
  const startedAt = performance.now()
  await sql`insert into account (id, name, mode, unlimited, enabled, posted, held, created_at)
    select ${text(engine, 'acc', sql`i`)}, cast(i as text), 'sandbox', false, true, 0, 0, ${begin}
    from ${series(engine, 0, accounts - 1)}`.execute(db)
  for (let from = 0; from < rows; from += rowsPerInsert) {
    const to = Math.min(from + rowsPerInsert, rows) - 1
    await insertRequests(db, engine, from, to)
  }
  await sql`insert into usage_hour (hour, account_id, key_id, model, capability, vendor, requests, cost, vendor_cost,
      ${sql.join(summedColumns.map((column) => sql.ref(column)))})
    select created_at / 3600000 * 3600000, account_id, key_id, model, 'chat', 'openai', count(*), sum(cost), sum(cost),
      ${sql.join(summedColumns.map((column) => (column === 'input' || column === 'output' ? sql`sum(100)` : sql`0`)))}
    from request group by 1, 2, 3, 4`.execute(db)
  const all = sql.join(['requests', 'cost', 'vendor_cost', ...summedColumns].map((column) => sql.ref(column)))
  const added = sql.join(
    ['requests', 'cost', 'vendor_cost', ...summedColumns].map((column) => sql`sum(${sql.ref(column)})`),
  )
  await sql`insert into usage_day (hour, account_id, key_id, model, capability, vendor, ${all})
    select hour / ${sql.lit(dayMs)} * ${sql.lit(dayMs)}, account_id, key_id, model, capability, vendor, ${added}
    from usage_hour group by 1, 2, 3, 4, 5, 6`.execute(db)
  // PostgreSQL does this by itself over time; an embedded SQLite never has statistics, so it is measured without.
  if (engine === 'postgres') await sql`analyze`.execute(db)
  const { rows: counted } = await sql<{ hours: bigint; days: bigint }>`
    select (select count(*) from usage_hour) as hours, (select count(*) from usage_day) as days`.execute(db)
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.log(`\n${engine}: filled in ${seconds} s; sums: ${counted[0]?.hours} hours, ${counted[0]?.days} days`)
}

async function insertRequests(db: Queries, engine: Engine, from: number, to: number): Promise<void> {
  // A prime step spreads accounts, keys and models over the hours without a random number.
  await sql`insert into request (id, account_id, key_id, model, capability, status, cost, basis, usage, streamed,
      duration_ms, created_at)
    select ${text(engine, 'req', sql`i`)}, ${text(engine, 'acc', sql`(i * 7919) % 100`)},
      ${text(engine, 'key', sql`(i * 7919) % 200`)}, 'model-' || cast((i * 7919) % 200 % 20 + i / 200 % 3 as text),
      'chat', 200, 1000 + i % 1000, 'vendor', '{"input":100,"output":100}', false, 800,
      ${begin} + cast(i as bigint) * ${days * dayMs} / ${rows}
    from ${series(engine, from, to)}`.execute(db)
}

function series(engine: Engine, from: number, to: number) {
  return engine === 'postgres'
    ? sql`generate_series(${sql.lit(from)}::bigint, ${sql.lit(to)}::bigint) as s(i)`
    : sql`(with recursive s(i) as (select ${sql.lit(from)} union all select i + 1 from s where i < ${sql.lit(to)})
        select i from s)`
}

function text(engine: Engine, prefix: string, number: ReturnType<typeof sql>) {
  return engine === 'postgres'
    ? sql`${sql.lit(prefix)} || '_' || lpad(to_hex(${number}), 32, '0')`
    : sql`${sql.lit(prefix)} || '_' || printf('%032x', ${number})`
}

function idOf(prefix: string, number: number): string {
  return `${prefix}_${number.toString(16).padStart(32, '0')}`
}

async function one(asked: Promise<unknown>): Promise<unknown[]> {
  return [await asked]
}

/** The queries as the API makes them. */
function questions(store: Store): Record<string, () => Promise<{ length: number }>> {
  const { db } = store
  const every: UsageFilter = { scope: 'every-account' }
  // The filter that is used where the database has been used in both modes.
  const moded: UsageFilter = { ...every, mode: 'sandbox' }
  const own: UsageFilter = { scope: { accountId: idOf('acc', 42) } }
  const month = { from: end - 30 * dayMs, to: end }
  const page = { limit: 101 }
  const middle = { createdAt: begin + (end - begin) / 2, id: idOf('req', 0) }
  return {
    'operator: one day, by hour': () => sumUsage(store, { ...every, from: end - dayMs, to: end }, 'hour', page),
    'operator: 30 days, by day': () => sumUsage(store, { ...every, ...month }, 'day', page),
    'operator: 30 days and 5 hours, by day': () =>
      sumUsage(store, { ...every, from: month.from - 5 * 3_600_000 }, 'day', page),
    'operator: 30 days by day, one of two modes': () => sumUsage(store, { ...moded, ...month }, 'day', page),
    'operator: 30 days, by hour': () => sumUsage(store, { ...every, ...month }, 'hour', page),
    'operator: 30 days, by account': () => sumUsage(store, { ...every, ...month }, 'account', page),
    'operator: 30 days of a model, by day': () =>
      sumUsage(store, { ...every, ...month, model: 'model-7' }, 'day', page),
    'operator: everything, by model': () => sumUsage(store, every, 'model', page),
    'operator: everything, one sum': () => sumUsage(store, every, 'nothing', page),
    'customer: 30 days, by day': () => sumUsage(store, { ...own, ...month }, 'day', page),
    'customer: everything, by model': () => sumUsage(store, own, 'model', page),
    'customer: everything of a key': () => sumUsage(store, { ...own, keyId: idOf('key', 42) }, 'nothing', page),
    'cap: a key, this month': () =>
      one(spentSince(db, { accountId: idOf('acc', 42), keyId: idOf('key', 42), since: month.from })),
    'newest requests': () => listRequests(db, every, { limit: 21 }),
    'newest requests, one of two modes': () => listRequests(db, moded, { limit: 21 }),
    'newest requests of an account': () => listRequests(db, own, { limit: 101 }),
    'requests of an account, page in the middle': () => listRequests(db, own, { limit: 101, before: middle }),
    'requests of a key': () => listRequests(db, { ...every, keyId: idOf('key', 7) }, { limit: 101 }),
    'requests of a model, page in the middle': () =>
      listRequests(db, { ...every, model: 'model-7' }, { limit: 101, before: middle }),
    'requests of an account and a model': () => listRequests(db, { ...own, model: 'model-3' }, { limit: 101 }),
    'requests of an account, a model of others': () => listRequests(db, { ...own, model: 'model-15' }, { limit: 101 }),
    'requests of an account, no model': () => listRequests(db, { ...own, model: '%%%%' }, { limit: 101 }),
    'one request': () => one(requestById(db, { scope: 'every-account', id: idOf('req', 12_345) })),
  }
}

async function measure(store: Store): Promise<void> {
  const watch = watched(store)
  const asked = questions(watch.store)
  for (const [name, ask] of Object.entries(asked)) {
    const times: number[] = []
    let found = 0
    for (let round = 0; round < rounds; round++) {
      const startedAt = performance.now()
      found = (await ask()).length
      times.push(performance.now() - startedAt)
    }
    times.sort((a, b) => a - b)
    const median = (times[Math.floor(rounds / 2)] ?? 0).toFixed(1)
    console.log(`${name.padEnd(46)} ${median.padStart(8)} ms ${String(found).padStart(4)} rows`)
    if (values.plans) for (const line of await watch.plan()) console.log(`    ${line}`)
  }
}

/** The store, which remembers its last query so that the engine can be asked for its plan. */
function watched(store: Store): { store: Store; plan(): Promise<string[]> } {
  let last: RootOperationNode | undefined
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      last = node
      return node
    },
    transformResult: ({ result }) => Promise.resolve(result),
  }
  const db = store.db.withPlugin(plugin)
  return {
    store: { ...store, db, snapshot: (work) => db.transaction().execute(work) },
    async plan() {
      const plain = store.db.withoutPlugins()
      if (last === undefined) return []
      const { sql: text, parameters } = plain.getExecutor().compileQuery(last, { queryId: 'plan' })
      const explain = store.engine === 'sqlite' ? 'explain query plan' : 'explain (analyze, costs off, timing off)'
      const { rows } = await plain.executeQuery<Record<string, string>>(
        CompiledQuery.raw(`${explain} ${text}`, [...parameters]),
      )
      return rows.map((row) => row['detail'] ?? row['QUERY PLAN'] ?? '')
    },
  }
}
