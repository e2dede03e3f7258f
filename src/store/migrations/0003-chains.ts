import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * What reconciling needs: postings in chains, so that an edit shows; the hold of a request, by which its record finds its
 * postings; and what was recorded of an attempt before the vendor's bill said otherwise.
 */
export function chains(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      // Empty in the rows of a version that knew no chains: how many those are stands in the chain without a name.
      for (const column of ['chain', 'hash'] as const) {
        await db.schema.alterTable('txn').addColumn(column, 'text').execute()
      }
      await db.schema.alterTable('txn').addColumn('seq', 'bigint').execute()
      await db.schema.createIndex('txn_chain').unique().on('txn').columns(['chain', 'seq']).execute()

      await db.schema
        .createTable('chain')
        .addColumn('id', 'text', (c) => c.primaryKey())
        .addColumn('seq', 'bigint', (c) => c.notNull())
        .addColumn('hash', 'text', (c) => c.notNull())
        .execute()
      await sql`insert into chain (id, seq, hash) select '', count(*), '' from txn`.execute(db)

      await db.schema.alterTable('request').addColumn('hold_id', 'text').execute()
      await db.schema.alterTable('attempt').addColumn('recorded_cost', 'bigint').execute()
    },
  }
}
