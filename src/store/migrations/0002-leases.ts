import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Tables for what nodes have leased, for answers kept under Idempotency-Keys, and for usage summed by hour. */
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

      await db.schema
        .createTable('idempotency')
        .addColumn('account_id', 'text', (c) => c.notNull())
        .addColumn('path', 'text', (c) => c.notNull())
        .addColumn('key_digest', 'text', (c) => c.notNull())
        .addColumn('fingerprint', 'text', (c) => c.notNull())
        .addColumn('state', 'text', (c) => c.notNull().check(sql`state in ('running', 'done')`))
        .addColumn('request_id', 'text', (c) => c.notNull())
        .addColumn('node', 'text', (c) => c.notNull())
        .addColumn('status', 'integer')
        .addColumn('sealed_body', 'text')
        .addColumn('created_at', 'bigint', (c) => c.notNull())
        .addPrimaryKeyConstraint('idempotency_key', ['account_id', 'path', 'key_digest'])
        .execute()
      await db.schema.createIndex('idempotency_age').on('idempotency').column('created_at').execute()

      await createRollup(db)
    },
  }
}

const sums = ['requests', 'cost', 'vendor_cost', 'images', 'video_seconds'] as const
const countedUnits = [
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

/** One row per hour, account, key, model, capability and vendor: reports add these up instead of every request. */
async function createRollup(db: Kysely<unknown>): Promise<void> {
  let table = db.schema
    .createTable('usage_hour')
    .addColumn('hour', 'bigint', (c) => c.notNull())
    .addColumn('account_id', 'text', (c) => c.notNull())
    .addColumn('key_id', 'text', (c) => c.notNull())
    .addColumn('model', 'text', (c) => c.notNull())
    .addColumn('capability', 'text', (c) => c.notNull())
    .addColumn('vendor', 'text', (c) => c.notNull())
  for (const column of [...sums, ...countedUnits]) table = table.addColumn(column, 'bigint', (c) => c.notNull())
  await table
    .addPrimaryKeyConstraint('usage_hour_key', ['account_id', 'hour', 'key_id', 'model', 'capability', 'vendor'])
    .execute()
  await db.schema.createIndex('usage_hour_hour').on('usage_hour').column('hour').execute()
}
