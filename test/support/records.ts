import { nano, type Nano } from '../../src/base/money.ts'
import type { TestGateway } from './gateway.ts'

/** What the ledger keeps of one request, found by the id its answer carried. */
export async function recordOf({ store }: TestGateway, answer: Response | string) {
  const id = typeof answer === 'string' ? answer : (answer.headers.get('x-request-id') ?? '')
  return store.db.selectFrom('request').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
}

export async function attemptsOf({ store }: TestGateway, answer: Response | string) {
  const id = typeof answer === 'string' ? answer : (answer.headers.get('x-request-id') ?? '')
  return store.db.selectFrom('attempt').selectAll().where('request_id', '=', id).orderBy('created_at').execute()
}

/** The holds of one account, oldest first. */
export async function holdsOf({ store }: TestGateway, accountId: string) {
  return store.db.selectFrom('hold').selectAll().where('account_id', '=', accountId).orderBy('created_at').execute()
}

/** All that stands in the books under a name such as `platform:loss`. */
export async function booked({ store }: TestGateway, account: string): Promise<Nano> {
  const rows = await store.db.selectFrom('entry').select('amount').where('account', '=', account).execute()
  return nano(rows.reduce((sum, { amount }) => sum + amount, 0n))
}

/** The newest request of an account, for where the client never saw an answer to take the id from. */
export async function lastRequestOf({ store }: TestGateway, accountId: string) {
  return store.db
    .selectFrom('request')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
}
