import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Dialect, Kysely, sql } from 'kysely'
import { type Clock, systemClock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import { type DatabaseTime, followDatabaseTime } from './database-time.ts'
import { migrate } from './migrate.ts'
import { RowNormalizer } from './rows.ts'
import type { Queries, Schema, Tx } from './schema.ts'
import { openSqlite } from './sqlite.ts'

export type Engine = 'sqlite' | 'postgres'

/** Where the database is: `url` is `postgres://…`, `file` is a path or `:memory:`. */
type Place = { readonly url: string; readonly file?: never } | { readonly file: string; readonly url?: never }

export type StoreOptions = Place & {
  /** Replaces the clock of the machine or the database; for tests. */
  readonly clock?: Pick<Clock, 'now'>
  /** Milliseconds to wait for PostgreSQL, in place of the limits after which a customer's request is refused. */
  readonly waitMs?: number
}

export type Store = {
  readonly engine: Engine
  /**
   * Never use it inside the `work` of a transaction: on SQLite there is one connection, and the query would wait for
   * the very transaction it stands in.
   */
  readonly db: Queries
  /** Unix milliseconds, by the clock that all nodes on the database share: on PostgreSQL that of its own machine. */
  now(): number
  /** All of it or nothing. On SQLite transactions run one after another, and plain queries wait for the open one. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Reads one consistent state. Its statements may take longer than a request's; on PostgreSQL `statementMsMax` limits
   * them. On SQLite every other query waits for it.
   */
  snapshot<T>(work: (tx: Tx) => Promise<T>, statementMsMax?: number): Promise<T>
  /** Rejects when the database does not answer or, on PostgreSQL, accepts no writes. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Opens and migrates the database. Rejects while PostgreSQL cannot be reached, which `isUnavailable` recognises. */
export async function openStore(options: StoreOptions): Promise<Store> {
  if (options.url !== undefined) return openOnPostgres(options.url, options)
  return openOnSqlite(options.file, options.clock ?? systemClock)
}

/** What an operator is told where a database cannot be opened: the engine's error says why, but not which database. */
export function cannotOpen({ file }: Pick<StoreOptions, 'file'>, thrown: unknown): Error {
  const which = file ?? 'of DATABASE_URL'
  return new Error(`the database ${which} cannot be opened: ${messageOf(thrown)}`, { cause: thrown })
}

async function openOnSqlite(file: string, clock: Pick<Clock, 'now'>): Promise<Store> {
  if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const db = connect(openSqlite(file))
  try {
    await migrate(db, 'sqlite')
  } catch (thrown) {
    await db.destroy()
    throw thrown
  }
  return storeOnSqlite(db, clock)
}

/** Another connection to a SQLite file that this process has open, and so has migrated. */
export async function openSecondConnection(file: string): Promise<Store> {
  const store = storeOnSqlite(connect(openSqlite(file)), systemClock)
  // Kysely does not close a connection that was never used.
  await store.ping()
  return store
}

function storeOnSqlite(db: Queries, clock: Pick<Clock, 'now'>): Store {
  return {
    engine: 'sqlite',
    db,
    now: () => clock.now(),
    transaction: (work) => db.transaction().execute(work),
    snapshot: (work) => db.transaction().setAccessMode('read only').execute(work),
    ping: () => ping(db),
    close: () => db.destroy(),
  }
}

async function openOnPostgres(url: string, { clock, waitMs }: StoreOptions): Promise<Store> {
  // The driver is imported here, so that an installation on SQLite never loads it.
  const { openPostgres } = await import('./postgres.ts')
  const migration = connect(openPostgres(url, 'migration', waitMs))
  try {
    await checkEncoding(migration)
    await migrate(migration, 'postgres')
  } finally {
    await migration.destroy()
  }
  let followed: DatabaseTime | undefined
  const db = connect(openPostgres(url, 'requests', waitMs, async (connection) => followed?.askOn(connection)))
  const time = await followDatabaseTime(db).catch(async (thrown: unknown) => {
    await db.destroy()
    throw thrown
  })
  followed = time
  const shared = clock ?? time
  const reports = connect(openPostgres(url, 'reports', waitMs))
  return {
    engine: 'postgres',
    db,
    now: () => shared.now(),
    // A server may be set to a stricter level, at which a transaction fails whenever another node was quicker.
    transaction: (work) => db.transaction().setIsolationLevel('read committed').execute(work),
    snapshot: (work, statementMsMax) =>
      reports
        .transaction()
        .setAccessMode('read only')
        .setIsolationLevel('repeatable read')
        .execute(async (tx) => {
          if (statementMsMax !== undefined)
            await sql`set local statement_timeout = ${sql.lit(statementMsMax)}`.execute(tx)
          return work(tx)
        }),
    ping: () => pingPostgres(db),
    close: async () => {
      time.close()
      await Promise.all([db.destroy(), reports.destroy()])
    },
  }
}

/** Names and the prompts of videos are stored, and may have any character. SQL_ASCII keeps every byte as it came. */
async function checkEncoding(db: Queries): Promise<void> {
  const { rows } = await sql<{ server_encoding: string }>`show server_encoding`.execute(db.withoutPlugins())
  const encoding = rows[0]?.server_encoding
  if (encoding === 'UTF8' || encoding === 'SQL_ASCII') return
  throw new Error(
    `the database is in ${encoding}, which lacks most characters: make one with encoding 'UTF8' template template0`,
  )
}

function connect(dialect: Dialect): Queries {
  return new Kysely<Schema>({ dialect, plugins: [new RowNormalizer()] })
}

async function ping(db: Queries): Promise<void> {
  await sql`select 1`.execute(db.withoutPlugins())
}

/** A write that changes nothing, but is refused by a server that is read-only. */
async function pingPostgres(db: Queries): Promise<void> {
  await db
    .deleteFrom('setting')
    .where(sql<boolean>`false`)
    .execute()
}
