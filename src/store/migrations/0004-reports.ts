import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** For reports over ten million requests: an index for the newest of all accounts, and sums by day beside the hours. */
export function reports(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      // The time alone: the few rows of one millisecond are sorted as they are read, while adding the id would triple
      // the index. On a large table an operator may have built it beforehand, without blocking requests:
      // docs/operators.md.
      await db.schema.createIndex('request_created').ifNotExists().on('request').column('created_at').execute()
      await createDays(db)
    },
  }
}

const sums = [
  'requests',
  'cost',
  'vendor_cost',
  'images',
  'video_seconds',
  'input',
  'cached_input',
  'cache_write',
  'cache_write_hour',
  'image_input',
  'audio_input',
  'output',
  'image_output',
  'audio_output',
  'character',
  'video_token',
  'web_search',
  'reasoning',
] as const

/** `hour` is the first hour of the day, so that both tables are read and written alike. */
async function createDays(db: Kysely<unknown>): Promise<void> {
  let table = db.schema
    .createTable('usage_day')
    .addColumn('hour', 'bigint', (c) => c.notNull())
    .addColumn('account_id', 'text', (c) => c.notNull())
    .addColumn('key_id', 'text', (c) => c.notNull())
    .addColumn('model', 'text', (c) => c.notNull())
    .addColumn('capability', 'text', (c) => c.notNull())
    .addColumn('vendor', 'text', (c) => c.notNull())
  for (const column of sums) table = table.addColumn(column, 'bigint', (c) => c.notNull())
  await table
    .addPrimaryKeyConstraint('usage_day_key', ['account_id', 'hour', 'key_id', 'model', 'capability', 'vendor'])
    .execute()
  await db.schema.createIndex('usage_day_hour').on('usage_day').column('hour').execute()

  const added = sql.join(sums.map((column) => sql`sum(${sql.ref(column)})`))
  await sql`insert into usage_day (hour, account_id, key_id, model, capability, vendor,
      ${sql.join(sums.map((column) => sql.ref(column)))})
    select hour / 86400000 * 86400000, account_id, key_id, model, capability, vendor, ${added}
    from usage_hour group by 1, 2, 3, 4, 5, 6`.execute(db)
}
