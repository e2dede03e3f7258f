import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * What was paid in, beside all that was charged: where every charge is booked at once, both stand in the chain of the account,
 * and a list of the few was a walk past the many. Charges have no part in it, and cost no more than before.
 */
export function credits(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      // On a large table an operator may have built it beforehand, without anybody waiting for it: docs/operators.md.
      await sql`create index if not exists txn_credit on txn (chain, seq) where kind = 'credit'`.execute(db)
    },
  }
}
