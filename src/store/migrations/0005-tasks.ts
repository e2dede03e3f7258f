import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Asynchronous video: tasks, the outbox of their webhook events, delivery attempts, and accounts' signing secrets. */
export function tasks(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await createTask(db)
      await createOutbox(db)
    },
  }
}

async function createTask(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('task')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('account_id', 'text', (c) => c.notNull())
    .addColumn('key_id', 'text', (c) => c.notNull())
    .addColumn('request_id', 'text', (c) => c.notNull())
    .addColumn('hold_id', 'text', (c) => c.notNull().unique().references('hold.id'))
    .addColumn('attempt_id', 'text', (c) => c.notNull().unique())
    .addColumn('model', 'text', (c) => c.notNull())
    .addColumn('vendor', 'text', (c) => c.notNull())
    .addColumn('channel', 'text', (c) => c.notNull())
    .addColumn('upstream_model', 'text', (c) => c.notNull())
    .addColumn('upstream_id', 'text')
    .addColumn('state', 'text', (c) =>
      c
        .notNull()
        .check(sql`state in ('creating', 'submitted', 'running', 'succeeded', 'failed', 'cancelled', 'refused')`),
    )
    .addColumn('in_doubt', 'boolean', (c) => c.notNull())
    .addColumn('sends', 'integer', (c) => c.notNull())
    .addColumn('sent_at', 'bigint', (c) => c.notNull())
    .addColumn('ask', 'text')
    .addColumn('facts', 'text', (c) => c.notNull())
    .addColumn('record', 'text')
    .addColumn('result', 'text')
    .addColumn('usage', 'text')
    .addColumn('failure', 'text')
    .addColumn('prices', 'text', (c) => c.notNull())
    .addColumn('costs', 'text', (c) => c.notNull())
    .addColumn('webhook_url', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('updated_at', 'bigint', (c) => c.notNull())
    .addColumn('finished_at', 'bigint')
    .addColumn('deadline', 'bigint', (c) => c.notNull())
    .addColumn('next_poll_at', 'bigint')
    .addColumn('polls', 'integer', (c) => c.notNull())
    .addColumn('failures', 'integer', (c) => c.notNull())
    .addColumn('lost', 'integer', (c) => c.notNull())
    .addColumn('claim_owner', 'text')
    .addColumn('claim_until', 'bigint')
    .execute()
  // Spending caps add up an account's open task holds.
  await sql`create index hold_task on hold (account_id) where state = 'open' and kind = 'task'`.execute(db)
  // Due tasks are found channel by channel, since each channel is polled at its own pace. Tasks that are no longer
  // polled are not in this index.
  await sql`create index task_due on task (channel, next_poll_at) where next_poll_at is not null`.execute(db)
  await db.schema.createIndex('task_account').on('task').columns(['account_id', 'created_at', 'id']).execute()
  await db.schema.createIndex('task_created').on('task').columns(['created_at', 'id']).execute()
  // Serves lookups by the vendor's id, and keeps one vendor task from being recorded as two of ours.
  await sql`create unique index task_upstream on task (upstream_id, channel) where upstream_id is not null`.execute(db)
}

async function createOutbox(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('webhook_event')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('account_id', 'text', (c) => c.notNull())
    // At most one event per task, no matter which node ends the task or how often.
    .addColumn('task_id', 'text', (c) => c.notNull().unique().references('task.id'))
    .addColumn('url', 'text', (c) => c.notNull())
    .addColumn('host', 'text', (c) => c.notNull())
    .addColumn('payload', 'text', (c) => c.notNull())
    .addColumn('state', 'text', (c) => c.notNull())
    .addColumn('attempts', 'integer', (c) => c.notNull())
    .addColumn('next_at', 'bigint')
    .addColumn('claim_owner', 'text')
    .addColumn('claim_until', 'bigint')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
  await sql`create index webhook_event_due on webhook_event (next_at) where next_at is not null`.execute(db)
  for (const columns of [
    ['account_id', 'created_at', 'id'],
    ['created_at', 'id'],
  ]) {
    await db.schema.createIndex(`webhook_event_${columns[0]}`).on('webhook_event').columns(columns).execute()
  }

  await db.schema
    .createTable('webhook_attempt')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('event_id', 'text', (c) => c.notNull().references('webhook_event.id'))
    .addColumn('status', 'integer', (c) => c.notNull())
    .addColumn('why', 'text')
    .addColumn('excerpt', 'text')
    .addColumn('duration_ms', 'bigint', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
  await db.schema
    .createIndex('webhook_attempt_event')
    .on('webhook_attempt')
    .columns(['event_id', 'created_at'])
    .execute()

  await db.schema
    .createTable('webhook_secret')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('account_id', 'text', (c) => c.notNull().references('account.id'))
    .addColumn('sealed', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('webhook_secret_account')
    .on('webhook_secret')
    .columns(['account_id', 'created_at'])
    .execute()
}
