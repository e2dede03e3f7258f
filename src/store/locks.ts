import type { Tx } from './schema.ts'
import { isPostgres } from './writes.ts'

/**
 * Locks rows until the transaction ends, and waits for others that have locked them. SQLite has no such clause and
 * needs none: no other transaction is open meanwhile.
 */
export function locked<Q extends { forUpdate(): Q }>(tx: Tx, rows: Q): Q {
  return isPostgres(tx) ? rows.forUpdate() : rows
}

/** The same without a wait: leaves out the rows that another node has locked at this moment. */
export function lockedIfFree<Q extends { forUpdate(): Q; skipLocked(): Q }>(tx: Tx, rows: Q): Q {
  return isPostgres(tx) ? rows.forUpdate().skipLocked() : rows
}
