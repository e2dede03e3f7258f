import { type DatabaseConnection, type Dialect, PostgresDialect } from 'kysely'
import { type Client, Pool, type PoolClient, type PoolConfig, types } from 'pg'
import { codeOf } from '../base/system-errors.ts'
import { NotConnected, readOnlyCode } from './faults.ts'

// PostgreSQL's own default is 100 connections in all; several nodes and an operator's tools share them.
const requestConnectionsMax = 20
// For a request's path: a database that takes longer is as good as gone, and the gateway answers 503.
const connectTimeoutMs = 1_000
const requestStatementMs = 1_000
const reportStatementMs = 60_000
const migrationStatementMs = 10 * 60_000
// A migration that waits for a table makes everybody wait behind it, on all tables that it has got already: far less than
// a request's statement may take. Then it lets go of them, and is tried again.
const migrationLockMs = 150
// The client's own clock runs a little longer than the server's: it is for a server that is stopped altogether.
const clientGraceMs = 500
// A node that stalls inside a transaction must not keep the lock on a busy account.
const idleInTransactionMs = 5_000
const idleConnectionMs = 30_000

// What pg throws when its own clock runs out; it has no code.
const readTimeout = 'Query read timeout'

const int8 = 20

/** 64-bit integers as BigInt, in our pools alone: pg's default is text, and its global table belongs to everybody. */
const readers = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? BigInt : types.getTypeParser(oid, format ?? 'text')) as typeof types.getTypeParser,
}

/** What a pool is for decides how long a statement may take. */
const purposes = {
  requests: { max: requestConnectionsMax, ...statementWithin(requestStatementMs) },
  // Few and slow: a report over a year must neither fail for a request's timeout nor use up its connections.
  reports: { max: 2, ...statementWithin(reportStatementMs) },
  // Building an index takes longer than any request may wait. Two: the migrator keeps one for its lock.
  migration: { max: 2, ...statementWithin(migrationStatementMs), lock_timeout: migrationLockMs },
} as const satisfies Record<string, PoolConfig>

function statementWithin(limitMs: number) {
  return { statement_timeout: limitMs, query_timeout: limitMs + clientGraceMs }
}

/**
 * `waitMs`: for whoever would rather wait than be refused. As long may a connection take, and a statement of a request.
 * `greet` has each new connection before anybody else, and must not throw.
 */
export function openPostgres(
  url: string,
  purpose: keyof typeof purposes,
  waitMs?: number,
  greet?: (connection: DatabaseConnection) => Promise<void>,
): Dialect {
  const pool = new Pool({
    ...purposes[purpose],
    ...(waitMs !== undefined && purpose === 'requests' && statementWithin(waitMs)),
    connectionString: url,
    application_name: `turnpike-${purpose}`,
    connectionTimeoutMillis: waitMs ?? connectTimeoutMs,
    idleTimeoutMillis: idleConnectionMs,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    keepAlive: true,
    types: readers,
  })
  // A lost connection is told to whoever waits on it, and the pool replaces it. Without listeners the same event would
  // also end the process: from the pool while idle, from the client between two statements of a transaction.
  pool.on('error', ignore)
  pool.on('connect', (client) => {
    client.on('error', ignore)
    watchStatements(client)
  })
  pool.on('release', (_error, client) => {
    if (onlyRead.has(client)) end(client)
  })
  return new PostgresDialect({
    pool: { options: pool.options, connect: () => connect(pool), end: () => pool.end() },
    ...(greet !== undefined && { onCreateConnection: greet }),
  })
}

async function connect(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect()
  } catch (thrown) {
    throw new NotConnected(thrown)
  }
}

/** Sessions that refused to write: each may do so for as long as it lives, whatever its database has come to allow. */
const onlyRead = new WeakSet<PoolClient>()

/**
 * A statement without an answer in time may still be carried out, with a transaction left open behind it: nobody else may
 * get such a connection. Ending it also spares the wait for a ROLLBACK that a stopped server would not answer either.
 */
function watchStatements(client: PoolClient): void {
  const query = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>
  const watched = async (...given: unknown[]): Promise<unknown> => {
    try {
      return await query(...given)
    } catch (error) {
      if (error instanceof Error && error.message === readTimeout) end(client)
      if (codeOf(error) === readOnlyCode) onlyRead.add(client)
      throw error
    }
  }
  // Kysely awaits every statement, so the forms with a callback are not needed.
  client.query = watched as typeof client.query
}

function end(client: PoolClient): void {
  void (client as unknown as Client).end().catch(ignore)
}

function ignore(): void {}
