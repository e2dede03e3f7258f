import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Which attempts a customer paid for. Until now that was guessed by whether they had cost something. */
export function delivered(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .alterTable('attempt')
        .addColumn('delivered', 'boolean', (c) => c.notNull().defaultTo(false))
        .execute()
      await sql`update attempt set delivered = true where coalesce(recorded_cost, vendor_cost) > 0`.execute(db)
    },
  }
}
