import { type Expression, type RawBuilder, sql } from 'kysely'
import type { Nano } from '../base/money.ts'

/** PostgreSQL sums bigints to numeric, which would come back as text. */
export function sum(amounts: Expression<Nano | null>): RawBuilder<Nano> {
  return sql<Nano>`cast(coalesce(sum(${amounts}), 0) as bigint)`
}
