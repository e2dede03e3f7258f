import { sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { pause } from '../base/pause.ts'
import { codeOf } from '../base/system-errors.ts'
import { ledger } from './migrations/0001-ledger.ts'
import { leases } from './migrations/0002-leases.ts'
import { chains } from './migrations/0003-chains.ts'
import { reports } from './migrations/0004-reports.ts'
import { tasks } from './migrations/0005-tasks.ts'
import { delivered } from './migrations/0006-delivered.ts'
import { credits } from './migrations/0007-credits.ts'
import type { Engine } from './open.ts'
import type { Queries } from './schema.ts'
import { isPostgres } from './writes.ts'

/**
 * The migrations in order. A released one is never edited: a change is a new line here. Migrations only add (expand) or
 * remove what no running version reads (contract), since during a rolling restart two versions work on one database: a
 * new column is null or has a default in the rows that the older version writes.
 */
export function migrations(engine: Engine): Record<string, Migration> {
  return {
    '0001-ledger': ledger(engine),
    '0002-leases': leases(),
    '0003-chains': chains(),
    '0004-reports': reports(),
    '0005-tasks': tasks(),
    '0006-delivered': delivered(),
    '0007-credits': credits(),
  }
}

// Longer than any index takes to build, because another node may be building one.
const giveUpAfterMs = 10 * 60_000
const pauseMs = 250
// While a migration waits for a table, requests wait behind it on every table that it has locked already. So it waits
// far less than a request's statement may take, then releases its locks and is tried again.
const lockMs = 150

/** The id of Kysely's own lock, which earlier versions take: theirs and ours keep each other out. */
const lockId = 3853314791062309107n

/**
 * Safe to call from several nodes at once, by an advisory lock on PostgreSQL and BEGIN IMMEDIATE on SQLite. Also safe
 * while an older version serves: each migration is its own transaction, and one that cannot lock its tables at once
 * releases them and is tried again a little later. A migration that changes two tables which requests write to may
 * never get both.
 */
export async function migrate(store: Queries, engine: Engine): Promise<void> {
  const db = store.withoutPlugins()
  const known = migrations(engine)
  const names = Object.keys(known)
  const migrateNext = async (on: Queries) => {
    const { error } = await new Migrator({
      db: on,
      provider: { getMigrations: () => Promise.resolve(known) },
    }).migrateUp()
    if (error !== undefined) throw error
  }
  const giveUpAt = performance.now() + giveUpAfterMs
  // A database that a newer version has migrated further is fine for us; the migrator would call it corrupted.
  while (!(await isDone(db, names))) {
    try {
      await (engine === 'postgres' ? alone(db, migrateNext) : migrateNext(db))
    } catch (error) {
      if (!inUse.has(codeOf(error)) || performance.now() > giveUpAt) throw failure(error)
      // Jittered, so that nodes that got in each other's way do not all retry at the same moment.
      await pause(pauseMs * (1 + Math.random()))
    }
  }
}

/**
 * The lock and the time to wait for a table belong to the transaction: PgBouncer ignores settings that a connection
 * begins with, and may give its session to another client after every transaction.
 */
async function alone(db: Queries, work: (tx: Queries) => Promise<void>): Promise<void> {
  // At a stricter level it would not see what another node migrated while it waited.
  await db
    .transaction()
    .setIsolationLevel('read committed')
    .execute(async (tx) => {
      await sql`select pg_advisory_xact_lock(${sql.lit(lockId)})`.execute(tx)
      await sql`set local lock_timeout = ${sql.lit(lockMs)}`.execute(tx)
      await work(tx)
    })
}

function failure(cause: unknown): Error {
  return new Error(`it could not be migrated: ${String(cause)}`, { cause })
}

async function isDone(db: Queries, names: readonly string[]): Promise<boolean> {
  if (!(await hasTable(db, 'kysely_migration'))) return false
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db)
  const done = new Set(rows.map((row) => row.name))
  return names.every((name) => done.has(name))
}

/** PostgreSQL: a lock timeout and a deadlock. SQLite: another connection is writing. */
const inUse: ReadonlySet<unknown> = new Set(['55P03', '40P01', 'SQLITE_BUSY'])

export async function hasTable(db: Queries, name: string): Promise<boolean> {
  const found = isPostgres(db)
    ? sql`select 1 from pg_class where oid = to_regclass(${name})`
    : sql`select 1 from sqlite_master where name = ${name}`
  return (await found.execute(db)).rows.length > 0
}
