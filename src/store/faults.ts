import { GatewayError, messageOf } from '../base/errors.ts'
import { codeOf } from '../base/system-errors.ts'

/** PostgreSQL's code for a write that was refused because the session or server is read-only. */
export const readOnlyCode = '25006'

/** Connections that could not be made, were lost, or timed out. */
const systemCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT'])
/**
 * PostgreSQL: connection exceptions, out of resources, a failing disk, shutdown, a statement, lock or idle transaction
 * that took too long, a deadlock, a statement that cannot be serialized; and a read-only server, as a standby is until
 * it is promoted, and as many cloud servers are while their disk is full.
 */
const postgresClasses = ['08', '53', '58030', '57P', '57014', '55P03', '25P03', '40P01', '40001', readOnlyCode]
const sqliteCodes = ['SQLITE_BUSY', 'SQLITE_FULL', 'SQLITE_IOERR', 'SQLITE_CANTOPEN', 'SQLITE_READONLY']
/** Messages of the errors that pg throws without a code. */
const messages = /timeout|terminated|not queryable|connection error|has been discarded/i

/** No connection could be made, for whatever reason: no statement reached the database, so none can be at fault. */
export class NotConnected extends Error {
  constructor(cause: unknown) {
    super(`no connection: ${messageOf(cause)}`, { cause })
  }
}

/**
 * Whether a start should wait for the database. A first connection that is refused, by a wrong password say, needs the
 * operator to change something, so waiting does not help.
 */
export function isAway(error: unknown): boolean {
  return isUnavailable(error instanceof NotConnected ? error.cause : error)
}

/**
 * Whether the database, not the query, is at fault: the gateway answers 503 and the client may try again. A commit
 * whose answer was lost counts too: it may have happened.
 */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof NotConnected) return true
  if (error instanceof AggregateError && error.errors.some(isUnavailable)) return true
  if (error.cause !== undefined && isUnavailable(error.cause)) return true
  const code = codeOf(error)
  if (typeof code !== 'string') return messages.test(error.message)
  // A file that the database's URL names, such as a certificate, is missing. A missing socket fails in `connect`.
  if ('syscall' in error && error.syscall === 'open') return false
  return (
    systemCodes.has(code) ||
    sqliteCodes.some((prefix) => code.startsWith(prefix)) ||
    postgresClasses.some((prefix) => code.startsWith(prefix))
  )
}

const waitedCodes: ReadonlySet<unknown> = new Set(['57014', '55P03'])

/**
 * Whether PostgreSQL itself ended a statement that took too long, mostly because somebody else held a lock. Unlike a
 * server that hangs it answers, and the lock may be free by the next try.
 */
export function isWaitedOut(error: unknown): boolean {
  return waitedCodes.has(codeOf(error))
}

const takenCodes: ReadonlySet<unknown> = new Set(['23505', 'SQLITE_CONSTRAINT_UNIQUE'])

/** Whether the query violated a unique constraint. */
export function isUniqueViolation(error: unknown): boolean {
  return takenCodes.has(codeOf(error))
}

/** What a request is answered when the store fails: 503 while the database is unavailable, else what was thrown. */
export function storeError(thrown: unknown): unknown {
  if (thrown instanceof GatewayError || !isUnavailable(thrown)) return thrown
  return new GatewayError('overloaded', 'The database does not answer at the moment.', {
    retryAfterSeconds: 1,
    cause: thrown,
  })
}
