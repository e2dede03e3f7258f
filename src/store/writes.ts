import { PostgresAdapter, type QueryCreator, sql } from 'kysely'
import type { Queries, Schema, Tx } from './schema.ts'

/** A write that is built and not yet sent. */
export type Write = Extract<Parameters<QueryCreator<Schema>['with']>[1], { execute(): unknown }>

/** Whether a statement may carry others in its WITH, as on PostgreSQL. */
export function isPostgres(db: Queries): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter
}

/**
 * Sends independent writes of one transaction: on PostgreSQL as parts of one statement, which saves a round trip for
 * each while a busy account waits; on SQLite, which has no round trips, one after another. No write may read what
 * another of them writes, since PostgreSQL shows each the state before all.
 */
export async function executeWrites(tx: Tx, writes: readonly Write[]): Promise<void> {
  if (!isPostgres(tx)) {
    for (const write of writes) await write.execute()
    return
  }
  let folded: QueryCreator<Schema> = tx
  for (const [at, write] of writes.entries()) folded = folded.with(`write_${at}`, write)
  await folded.selectNoFrom(sql<number>`1`.as('rows')).execute()
}
