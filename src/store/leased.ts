import type { Nano } from '../base/money.ts'
import type { Queries } from './schema.ts'
import { sum } from './sum.ts'

/** What nodes have leased of an account's balance, used or not. */
export async function leasedOf(db: Queries, accountId: string): Promise<Nano> {
  const { total } = await db
    .selectFrom('lease')
    .select((eb) => sum(eb.ref('amount')).as('total'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return total
}
