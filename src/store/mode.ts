import { type SqlBool, sql } from 'kysely'
import type { Mode } from './schema.ts'

/** Tables whose rows belong to an account. */
type Owned = 'api_key' | 'request' | 'task' | 'usage_day' | 'usage_hour' | 'webhook_event'

/**
 * Only rows of accounts in this mode. Checked row by row: given a list of accounts, SQLite would go through them one by
 * one and sort all their rows.
 */
export function isOfMode(table: Owned, mode: Mode) {
  const owner = sql.ref(`${table}.account_id`)
  return sql<SqlBool>`exists (select 1 from account where account.id = ${owner} and account.mode = ${mode})`
}
