import { sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { ledger } from './migrations/0001-ledger.ts'
import { leases } from './migrations/0002-leases.ts'
import { chains } from './migrations/0003-chains.ts'
import { reports } from './migrations/0004-reports.ts'
import { tasks } from './migrations/0005-tasks.ts'
import type { Engine } from './open.ts'
import type { Queries } from './schema.ts'

/**
 * In order, and never edited once released: a change is a new line here. Migrations only add (expand) or remove what no
 * running version reads (contract), since during a rolling restart two versions work on one database.
 */
function migrations(engine: Engine): Record<string, Migration> {
  return {
    '0001-ledger': ledger(engine),
    '0002-leases': leases(),
    '0003-chains': chains(),
    '0004-reports': reports(),
    '0005-tasks': tasks(),
  }
}

/** Safe to call from several nodes at once: PostgreSQL by an advisory lock, SQLite by BEGIN IMMEDIATE. */
export async function migrate(store: Queries, engine: Engine): Promise<void> {
  const db = store.withoutPlugins()
  const known = migrations(engine)
  // A database that a newer version has migrated further is fine for us; the migrator would call it corrupted.
  const done = await executedNames(db, engine)
  if (Object.keys(known).every((name) => done.has(name))) return

  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(known) } })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw new Error('the database could not be migrated', { cause: error })
}

async function executedNames(db: Queries, engine: Engine): Promise<ReadonlySet<string>> {
  const exists =
    engine === 'sqlite'
      ? await sql`select 1 from sqlite_master where name = 'kysely_migration'`.execute(db)
      : await sql`select 1 from pg_class where oid = to_regclass('kysely_migration')`.execute(db)
  if (exists.rows.length === 0) return new Set()
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db)
  return new Set(rows.map((row) => row.name))
}
