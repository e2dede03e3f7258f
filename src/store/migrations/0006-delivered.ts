import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Which attempts a customer paid for. Empty where a version wrote that did not say: no row is touched, since a table that is
 * rewritten is closed to everybody for as long as that takes, and older nodes go on writing rows without it.
 */
export function delivered(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema.alterTable('attempt').addColumn('delivered', 'boolean').execute()
    },
  }
}
