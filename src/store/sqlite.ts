import { Database, type SQLQueryBindings } from 'bun:sqlite'
import { accessSync, closeSync, constants, existsSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type QueryResult,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDialect,
  SqliteDriver,
  type SqliteStatement,
  type TransactionSettings,
} from 'kysely'
import { messageOf } from '../base/errors.ts'
import { pause } from '../base/pause.ts'
import { codeOf } from '../base/system-errors.ts'

/** The seam of `bun:sqlite`: nothing else in the store knows which SQLite it runs on. */

// A command beside a running gateway waits this long in all for the gateway's commit, which takes milliseconds.
const patienceMs = 5_000
// SQLite's own wait blocks the event loop, and every stream on it, so it is short; the rest of the time is waited in
// pauses between tries.
const blockingWaitMs = 10
const pauseMs = 5
const cacheKib = 16 * 1024
const checkpointPages = 4_000
// Twice what the WAL has when it is checkpointed. While another process reads for long, such as a backup, it cannot be
// checkpointed and grows; without a limit its file would keep that size until the gateway stops.
const walBytesKept = 32 * 1024 * 1024

// Bun's own cache stops at 20 statements and never evicts one. The store has about 60, and more for bulk inserts.
const statementsMax = 256

/** The dialect for Kysely, whose type of a SQLite database is another driver's; they meet only here. */
export function openSqlite(file: string): Dialect {
  const database = open(file, { safeIntegers: true })
  try {
    configure(database)
  } catch (thrown) {
    database.close()
    throw explained(file, thrown)
  }
  return new ImmediateDialect({ database: withStatementCache(database) })
}

/**
 * SQLite would create a file that everyone can read, and gives the files beside it the same mode. One that exists is
 * not even opened: closing a descriptor of it would drop the locks that this process has on it.
 */
function createPrivately(file: string): void {
  if (file === ':memory:' || existsSync(file)) return
  closeSync(openSync(file, 'a', 0o600)) // where a link leads nowhere yet, its target is created
}

function open(file: string, options: { readonly safeIntegers?: true } = {}): Database {
  createPrivately(file)
  try {
    return new Database(file, { create: true, strict: true, ...options })
  } catch (thrown) {
    throw explained(file, thrown)
  }
}

// A file, or a folder for the files beside it, that SQLite could not open, or only to read.
const unopened = /^SQLITE_(?:CANTOPEN|READONLY)/

/**
 * SQLite does not pass on why a file cannot be used. The system is asked, without opening it: see `createPrivately`.
 */
function explained(file: string, thrown: unknown): unknown {
  if (!unopened.test(String(codeOf(thrown)))) return thrown
  try {
    accessSync(file, constants.R_OK | constants.W_OK)
    accessSync(dirname(file), constants.W_OK | constants.X_OK)
    return thrown
  } catch (reason) {
    return new Error(messageOf(reason), { cause: thrown })
  }
}

function configure(database: Database): void {
  // Changing to WAL locks the file for a moment. It may block, because nothing runs on the event loop at the start.
  database.run(`PRAGMA busy_timeout = ${patienceMs}`)
  // In WAL a reader never waits for a writer; FULL makes every commit survive a power cut, at about 0.1 ms each.
  database.run('PRAGMA journal_mode = WAL')
  database.run('PRAGMA synchronous = FULL')
  // A turn of a thousand postings should find its pages in memory, and should not have to checkpoint the WAL each time.
  database.run(`PRAGMA cache_size = -${cacheKib}`)
  database.run(`PRAGMA wal_autocheckpoint = ${checkpointPages}`)
  database.run(`PRAGMA journal_size_limit = ${walBytesKept}`)
  // SQLite keeps the pages that an insert of many rows changes until it is done, beyond 64 KB in a file under /var/tmp:
  // a turn wrote more pages there than to the database.
  database.run('PRAGMA temp_store = MEMORY')
  // Erases deleted content from the file too, where the prompt of a video would stay in free pages for a long time. A
  // turn of a thousand postings takes as long as without it.
  database.run('PRAGMA secure_delete = ON')
  database.run('PRAGMA foreign_keys = ON')
  // Without it INSERT OR REPLACE deletes a row without firing the triggers that keep the ledger append-only.
  database.run('PRAGMA recursive_triggers = ON')
  database.run(`PRAGMA busy_timeout = ${blockingWaitMs}`)
}

function withStatementCache(database: Database): SqliteDatabase {
  type Statement = ReturnType<typeof database.prepare<unknown, SQLQueryBindings[]>>
  const statements = new Map<string, Statement>()
  return {
    prepare(sql) {
      let statement = statements.get(sql)
      if (statement === undefined) {
        statement = database.prepare<unknown, SQLQueryBindings[]>(sql)
        if (statements.size >= statementsMax) {
          const [oldest] = statements.keys()
          if (oldest !== undefined) statements.delete(oldest)
        }
        statements.set(sql, statement)
      }
      // Bun also takes bindings as one array; its types and Kysely's differ only in that.
      return statement as unknown as SqliteStatement
    },
    close() {
      for (const statement of statements.values()) statement.finalize()
      statements.clear()
      database.close()
    },
  }
}

class ImmediateDialect extends SqliteDialect {
  readonly #database: SqliteDatabase

  constructor(config: { database: SqliteDatabase }) {
    super(config)
    this.#database = config.database
  }

  override createDriver() {
    return new ImmediateDriver({ database: this.#database })
  }

  override createAdapter() {
    return new TransactionalAdapter()
  }
}

class ImmediateDriver extends SqliteDriver {
  #patient: DatabaseConnection | undefined

  override async acquireConnection(): Promise<DatabaseConnection> {
    this.#patient ??= new PatientConnection(await super.acquireConnection())
    return this.#patient
  }

  /**
   * A transaction that reads first and writes later fails at once with SQLITE_BUSY when another process wrote in
   * between: no timeout applies to that upgrade. Taking the write lock at the start waits instead.
   */
  override async beginTransaction(connection: DatabaseConnection, settings?: TransactionSettings): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw(settings?.accessMode === 'read only' ? 'begin' : 'begin immediate'))
  }

  /** When a disk is full or fails, SQLite has rolled back by itself; an error about that would hide the real one. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await super.rollbackTransaction(connection)
    } catch (error) {
      if (!(error instanceof Error && error.message.includes('no transaction is active'))) throw error
    }
  }
}

/** Retries a statement while another process commits: one that found the database busy has done nothing. */
class PatientConnection implements DatabaseConnection {
  readonly #connection: DatabaseConnection

  constructor(connection: DatabaseConnection) {
    this.#connection = connection
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const giveUpAt = performance.now() + patienceMs
    for (;;) {
      try {
        return await this.#connection.executeQuery<R>(query)
      } catch (error) {
        if (!isBusy(error) || performance.now() > giveUpAt) throw error
        await pause(pauseMs)
      }
    }
  }

  streamQuery<R>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<R>> {
    return this.#connection.streamQuery<R>(query, chunkSize)
  }
}

/** Not the extended codes such as SQLITE_BUSY_SNAPSHOT: waiting does not help a stale reader. */
function isBusy(error: unknown): boolean {
  return codeOf(error) === 'SQLITE_BUSY'
}

class TransactionalAdapter extends SqliteAdapter {
  /**
   * SQLite's schema changes are transactional; saying so makes the migrator run under BEGIN IMMEDIATE, so that each
   * migration runs once.
   */
  override get supportsTransactionalDdl() {
    return true
  }
}

/**
 * Puts all of a database into its one file, and deletes the files beside it, which hold what was written last. Throws,
 * with nothing changed, where another program has the database open: it uses those files.
 */
export function foldIntoOneFile(file: string): void {
  const database = open(file)
  try {
    database.run('PRAGMA busy_timeout = 0')
    database.run('PRAGMA journal_mode = DELETE')
  } catch (error) {
    throw isBusy(error) ? new Error(`another program has ${file} open: end it first`) : explained(file, error)
  } finally {
    database.close()
  }
}

/** The locks that are held. The runtime would close a database that nothing refers to any more, and drop its lock. */
const held = new Set<Database>()

/** Holds an exclusive lock on a tiny database until released. The kernel frees it however the process ends. */
export function lockFile(file: string): { release(): void } | undefined {
  const database = open(file)
  try {
    database.run('PRAGMA busy_timeout = 0')
    database.run('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (isBusy(error)) return undefined
    throw explained(file, error)
  }
  held.add(database)
  return {
    release() {
      held.delete(database)
      database.run('ROLLBACK')
      database.close()
    },
  }
}
