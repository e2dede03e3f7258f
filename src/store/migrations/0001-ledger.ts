import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { Engine } from '../open.ts'

/** `bigint` works on both engines: SQLite gives integer affinity to any declared type with INT in it. */
export function ledger(engine: Engine): Migration {
  return {
    async up(db) {
      await createAccess(db)
      await createMoney(db, engine)
      await createRecords(db)
      await createSmallTables(db)
      for (const table of ['txn', 'entry']) await refuseChanges(db, engine, table)
    },
  }
}

async function createAccess(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('account')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('mode', 'text', (c) => c.notNull().check(sql`mode in ('sandbox', 'real')`))
    .addColumn('unlimited', 'boolean', (c) => c.notNull())
    .addColumn('enabled', 'boolean', (c) => c.notNull())
    .addColumn('posted', 'bigint', (c) => c.notNull())
    .addColumn('held', 'bigint', (c) => c.notNull())
    .addColumn('cap_amount', 'bigint')
    .addColumn('cap_period', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addCheckConstraint('account_covers_holds', sql`unlimited or posted - held >= 0`)
    .addCheckConstraint('account_held_positive', sql`held >= 0`)
    // Far inside 64 bits, because SQLite silently turns a sum that overflows into a float.
    .addCheckConstraint('account_bounded', sql`abs(posted) <= 4000000000000000000 and held <= 4000000000000000000`)
    .execute()
  await db.schema.createIndex('account_name').unique().on('account').columns(['mode', 'name']).execute()

  await db.schema
    .createTable('api_key')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('account_id', 'text', (c) => c.notNull().references('account.id'))
    .addColumn('digest', 'text', (c) => c.notNull().unique())
    .addColumn('hint', 'text', (c) => c.notNull())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('models', 'text')
    .addColumn('limits', 'text')
    .addColumn('cap_amount', 'bigint')
    .addColumn('cap_period', 'text')
    .addColumn('expires_at', 'bigint')
    .addColumn('enabled', 'boolean', (c) => c.notNull())
    .addColumn('revoked_at', 'bigint')
    .addColumn('metadata', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
  await db.schema.createIndex('api_key_account').on('api_key').columns(['account_id', 'created_at']).execute()

  await db.schema
    .createTable('admin_key')
    .addColumn('digest', 'text', (c) => c.primaryKey())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
}

async function createMoney(db: Kysely<unknown>, engine: Engine): Promise<void> {
  await db.schema
    .createTable('hold')
    .addColumn('id', 'text', (c) => c.primaryKey())
    // The account row is locked by the same transaction anyway, so this foreign key costs nothing.
    .addColumn('account_id', 'text', (c) => c.notNull().references('account.id'))
    .addColumn('key_id', 'text', (c) => c.notNull())
    .addColumn('kind', 'text', (c) => c.notNull().check(sql`kind in ('request', 'task')`))
    .addColumn('amount', 'bigint', (c) => c.notNull().check(sql`amount >= 0`))
    .addColumn('price_version', 'text', (c) => c.notNull())
    .addColumn('deadline', 'bigint', (c) => c.notNull())
    .addColumn('state', 'text', (c) => c.notNull().check(sql`state in ('open', 'settled', 'void')`))
    .addColumn('node', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('ended_at', 'bigint')
    .execute()
  // Few holds are open at a time: recovery and the invariant on `held` look only at those.
  await sql`create index hold_open on hold (deadline) where state = 'open'`.execute(db)

  // No foreign key to `hold`: a settlement proves its hold by the compare-and-set in the same transaction.
  await db.schema
    .createTable('txn')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('kind', 'text', (c) => c.notNull().check(oneOf('kind', ['credit', 'settle', 'loss', 'correction'])))
    .addColumn('hold_id', 'text')
    .addColumn('price_version', 'text')
    .addColumn('usage', 'text')
    .addColumn('basis', 'text', (c) =>
      c.notNull().check(oneOf('basis', ['vendor', 'estimated', 'policy_zero', 'manual'])),
    )
    .addColumn('note', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()

  const entry = db.schema
    .createTable('entry')
    .addColumn('txn_id', 'text', (c) => c.notNull().references('txn.id'))
    .addColumn('account', 'text', (c) => c.notNull())
    .addColumn('amount', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('entry_key', ['txn_id', 'account'])
  // Most of an entry is its key, which SQLite would write twice if the table had row ids, four times a request.
  await (engine === 'sqlite' ? entry.modifyEnd(sql`without rowid`) : entry).execute()
}

/**
 * Not written as `in`: for more than two values SQLite builds a table and searches it, which takes a third of the time
 * of inserting a txn row.
 */
function oneOf(column: string, words: readonly string[]): RawBuilder<unknown> {
  return sql.join(
    words.map((word) => sql`${sql.ref(column)} = ${sql.lit(word)}`),
    sql` or `,
  )
}

async function createRecords(db: Kysely<unknown>): Promise<void> {
  // No foreign keys here: a record of what happened must never be refused because another row is missing.
  await db.schema
    .createTable('request')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('account_id', 'text', (c) => c.notNull())
    .addColumn('key_id', 'text', (c) => c.notNull())
    .addColumn('model', 'text', (c) => c.notNull())
    .addColumn('capability', 'text', (c) => c.notNull())
    .addColumn('status', 'integer', (c) => c.notNull())
    .addColumn('cost', 'bigint', (c) => c.notNull())
    .addColumn('basis', 'text', (c) => c.notNull())
    .addColumn('usage', 'text')
    .addColumn('streamed', 'boolean', (c) => c.notNull())
    .addColumn('duration_ms', 'bigint', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
  for (const column of ['account_id', 'key_id', 'model']) {
    await db.schema.createIndex(`request_${column}`).on('request').columns([column, 'created_at']).execute()
  }

  await db.schema
    .createTable('attempt')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('request_id', 'text', (c) => c.notNull())
    .addColumn('channel', 'text', (c) => c.notNull())
    .addColumn('vendor', 'text', (c) => c.notNull())
    .addColumn('upstream_model', 'text', (c) => c.notNull())
    .addColumn('status', 'integer', (c) => c.notNull())
    .addColumn('vendor_cost', 'bigint', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
  await db.schema.createIndex('attempt_request').on('attempt').column('request_id').execute()
  await db.schema.createIndex('attempt_vendor').on('attempt').columns(['vendor', 'created_at']).execute()
}

async function createSmallTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('revision')
    .addColumn('name', 'text', (c) => c.primaryKey())
    .addColumn('value', 'bigint', (c) => c.notNull())
    .execute()
  await db.schema
    .createTable('audit')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('at', 'bigint', (c) => c.notNull())
    .addColumn('actor', 'text', (c) => c.notNull())
    .addColumn('action', 'text', (c) => c.notNull())
    .addColumn('subject', 'text', (c) => c.notNull())
    .addColumn('detail', 'text', (c) => c.notNull())
    .execute()
  await db.schema.createIndex('audit_at').on('audit').columns(['at', 'id']).execute()
  await db.schema
    .createTable('setting')
    .addColumn('name', 'text', (c) => c.primaryKey())
    .addColumn('value', 'text', (c) => c.notNull())
    .execute()
}

/** Makes a table of the ledger append-only for everyone but the owner of the database. */
async function refuseChanges(db: Kysely<unknown>, engine: Engine, table: string): Promise<void> {
  const message = `${table} is append-only: post a correction instead`
  if (engine === 'sqlite') {
    for (const change of ['update', 'delete']) {
      await sql`create trigger ${sql.ref(`${table}_refuses_${change}`)} before ${sql.raw(change)} on ${sql.table(table)}
        begin select raise(abort, ${sql.lit(message)}); end`.execute(db)
    }
    return
  }
  await sql`create function ${sql.ref(`${table}_refuse`)}() returns trigger language plpgsql as
    ${sql.lit(`begin raise exception '${message}'; end`)}`.execute(db)
  // A statement-level trigger, so that TRUNCATE is refused too.
  await sql`create trigger ${sql.ref(`${table}_refuses_change`)} before update or delete or truncate on ${sql.table(table)}
    for each statement execute function ${sql.ref(`${table}_refuse`)}()`.execute(db)
}
