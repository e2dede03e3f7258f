import { type DatabaseConnection, type Dialect, PostgresAdapter, PostgresDialect } from 'kysely'
import { type Client, type ClientBase, Pool, type PoolClient, type PoolConfig, types } from 'pg'
import { codeOf } from '../base/system-errors.ts'
import { NotConnected, readOnlyCode } from './faults.ts'

// PostgreSQL's own default is 100 connections in all; several nodes and an operator's tools share them.
const requestConnectionsMax = 20
// On a request's path: a database that takes longer counts as unavailable, and the gateway answers 503.
const connectTimeoutMs = 1_000
const requestStatementMs = 1_000
const reportStatementMs = 60_000
const migrationStatementMs = 10 * 60_000
// The client's own timeout is a little longer than the server's: it is for a server that has stopped altogether.
const clientGraceMs = 500
// A node that stalls inside a transaction must not keep the lock on a busy account.
const idleInTransactionMs = 5_000
const idleConnectionMs = 30_000

// The message of the error that pg throws after its own timeout; the error has no code.
const readTimeout = 'Query read timeout'
// How every statement after a failed one is refused until the transaction ends.
const abortedCode = '25P02'

const int8 = 20

/**
 * Reads 64-bit integers as BigInt, in our pools only: pg's default is text, and its global table of parsers is shared
 * by everything in the process that uses pg.
 */
const readers = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? BigInt : types.getTypeParser(oid, format ?? 'text')) as typeof types.getTypeParser,
}

/** What a pool is for decides how long a statement may take. */
const purposes = {
  requests: { max: requestConnectionsMax, ...statementWithin(requestStatementMs), onConnect: setReadCommitted },
  // Few and slow: a report over a year must neither fail by a request's timeout nor use up the connections of requests.
  reports: { max: 2, ...statementWithin(reportStatementMs) },
  // Building an index takes longer than a request may wait.
  migration: { max: 1, ...statementWithin(migrationStatementMs) },
} as const satisfies Record<string, PoolConfig>

function statementWithin(limitMs: number) {
  return { statement_timeout: limitMs, query_timeout: limitMs + clientGraceMs }
}

/**
 * `waitMs`, for callers that would rather wait than be refused, is how long connecting and a request's statement may
 * take. `greet` gets each new connection before any caller does, and must not throw.
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
  // A lost connection rejects the query that waits on it, and the pool replaces it. Without listeners the same event
  // would also end the process: from the pool while idle, from the client between two statements of a transaction.
  pool.on('error', ignore)
  pool.on('connect', (client) => {
    client.on('error', ignore)
    watchStatements(client)
  })
  pool.on('release', (_error, client) => {
    if (onlyRead.has(client)) end(client)
  })
  return new PooledDialect({
    pool: { options: pool.options, connect: () => connect(pool), end: () => pool.end() },
    ...(greet !== undefined && { onCreateConnection: greet }),
  })
}

/**
 * A server may be set to a stricter level, at which a statement outside a transaction fails if its row has changed
 * since it began: so would most of the holds that are taken from one account at once. Reports and migrations have
 * transactions that name their level. A failure is that of the connection, because a pooler may log a client in long
 * before it knows whether its database does so too, and says only at the first statement why it does not. The pool
 * awaits the promise, which its types do not say.
 */
function setReadCommitted(client: ClientBase): unknown {
  return client.query('set session characteristics as transaction isolation level read committed')
}

/** Without Kysely's lock on migrations, which belongs to a session: `migrate` takes one that poolers leave alone. */
export class PooledDialect extends PostgresDialect {
  override createAdapter(): PostgresAdapter {
    return new UnlockedAdapter()
  }
}

class UnlockedAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

async function connect(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect()
  } catch (thrown) {
    throw new NotConnected(thrown)
  }
}

/**
 * Sessions that refused a write. Each may go on refusing for as long as it lives, even once its database accepts writes
 * again, so it is ended when it is released.
 */
const onlyRead = new WeakSet<PoolClient>()

/**
 * A statement that timed out may still be carried out, with a transaction left open behind it, so its connection must
 * not be used again. Ending it also avoids waiting for a ROLLBACK that a stopped server would not answer either. A
 * statement that is refused because an earlier one of its transaction failed throws that one's error, which says why:
 * Kysely's migrator goes on asking after a failure.
 */
function watchStatements(client: PoolClient): void {
  const query = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>
  let failure: unknown
  const watched = async (...given: unknown[]): Promise<unknown> => {
    try {
      return await query(...given)
    } catch (error) {
      if (codeOf(error) === abortedCode) throw failure ?? error
      failure = error
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
