import { sql } from 'kysely'
import type { Queries } from './schema.ts'

/** The time of day that PostgreSQL's machine has, as unix milliseconds. */
export async function databaseTime(db: Queries): Promise<number> {
  const asked = sql<{ seen_at: number }>`
    select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as seen_at`
  const { rows } = await asked.execute(db)
  return rows[0]?.seen_at ?? Number.NaN
}
