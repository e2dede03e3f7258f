import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * An index of credits alone. In strict mode an account's chain holds its credits and every charge, so that listing the
 * few credits walked past all the charges. Charges are not in the index, and cost no more than before.
 */
export function credits(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      // On a large table an operator may have built it beforehand, without blocking requests: docs/operators.md.
      await sql`create index if not exists txn_credit on txn (chain, seq) where kind = 'credit'`.execute(db)
    },
  }
}
