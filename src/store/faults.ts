import { GatewayError } from '../base/errors.ts'
import { codeOf } from '../base/system-errors.ts'

/** What PostgreSQL says of a write where it only reads. */
export const readOnlyCode = '25006'

/** Connections that were never made, were lost, or wait too long. */
const systemCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT'])
/**
 * PostgreSQL: connection exceptions, out of resources, stopping, a statement or lock that took too long; and one that only
 * reads, as a standby does until it is promoted, and a server of many a cloud while its disk is full.
 */
const postgresClasses = ['08', '53', '57P', '57014', '55P03', '25P03', '40P01', readOnlyCode]
const sqliteCodes = ['SQLITE_BUSY', 'SQLITE_FULL', 'SQLITE_IOERR', 'SQLITE_CANTOPEN', 'SQLITE_READONLY']
/** What pg throws without a code. */
const messages = /timeout|terminated|not queryable|connection error|has been discarded/i

/** Whoever was not let in, for whatever reason, has asked nothing of the database: nothing can have been refused. */
export class NotConnected extends Error {
  constructor(cause: unknown) {
    super(`no connection: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** Whether a start should wait for it: what keeps a process out that was never in needs somebody to change it. */
export function isAway(error: unknown): boolean {
  return isUnavailable(error instanceof NotConnected ? error.cause : error)
}

/**
 * Whether the database, not the query, is at fault: the gateway answers 503 and the client may try again. A commit whose
 * answer was lost counts too: it may have happened.
 */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof NotConnected) return true
  if (error instanceof AggregateError && error.errors.some(isUnavailable)) return true
  if (error.cause !== undefined && isUnavailable(error.cause)) return true
  const code = codeOf(error)
  if (typeof code !== 'string') return messages.test(error.message)
  // A file that the address names, such as a certificate; a socket that is not there yet is not connected to.
  if ('syscall' in error && error.syscall === 'open') return false
  return (
    systemCodes.has(code) ||
    sqliteCodes.some((prefix) => code.startsWith(prefix)) ||
    postgresClasses.some((prefix) => code.startsWith(prefix))
  )
}

const takenCodes: ReadonlySet<unknown> = new Set(['23505', 'SQLITE_CONSTRAINT_UNIQUE'])

/** Whether the query would have written what may stand in one row alone, and stands in another. */
export function isTaken(error: unknown): boolean {
  return takenCodes.has(codeOf(error))
}

/** What a request is answered when the store fails it: 503 while the database is away, and else what was thrown. */
export function storeError(thrown: unknown): unknown {
  if (thrown instanceof GatewayError || !isUnavailable(thrown)) return thrown
  return new GatewayError('overloaded', 'The database does not answer at the moment.', {
    retryAfterSeconds: 1,
    cause: thrown,
  })
}
