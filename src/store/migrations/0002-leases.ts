import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What nodes have leased of balances, and sums of usage by the hour. */
export function leases(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('node')
        .addColumn('id', 'text', (c) => c.primaryKey())
        .addColumn('epoch', 'bigint', (c) => c.notNull())
        .addColumn('turn', 'bigint', (c) => c.notNull())
        .addColumn('seen_at', 'bigint', (c) => c.notNull())
        .execute()

      await db.schema
        .createTable('lease')
        .addColumn('node', 'text', (c) => c.notNull().references('node.id'))
        .addColumn('account_id', 'text', (c) => c.notNull().references('account.id'))
        .addColumn('amount', 'bigint', (c) => c.notNull().check(sql`amount >= 0`))
        .addPrimaryKeyConstraint('lease_key', ['node', 'account_id'])
        .execute()
      await db.schema.createIndex('lease_account').on('lease').column('account_id').execute()
    },
  }
}
