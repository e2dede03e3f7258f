import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Which attempts a customer paid for. Null in rows of older versions: existing rows are not filled in, since rewriting
 * the table would lock it for as long as that takes, and older nodes keep writing rows without the column.
 */
export function delivered(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema.alterTable('attempt').addColumn('delivered', 'boolean').execute()
    },
  }
}
