import { type Expression, type RawBuilder, sql } from 'kysely'
import type { Nano } from '../base/money.ts'

/** PostgreSQL sums bigints to numeric, which would come back as text. */
export function sum<N extends Nano | number>(amounts: Expression<N | null>): RawBuilder<N> {
  return sql<N>`cast(coalesce(sum(${amounts}), 0) as bigint)`
}
