import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * What reconciliation needs: hash chains over postings, so that an edit is visible; the hold of a request, under which
 * its postings are looked up; and the cost of an attempt before the vendor's bill corrected it.
 */
export function chains(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      // Null in rows of versions without chains; the chain with the empty id records how many such rows there are.
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
