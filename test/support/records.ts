import { nano, type Nano } from '../../src/base/money.ts'
import { until, type TestGateway } from './gateway.ts'

/** The ledger's record of one request, found by the id in its answer. */
export async function recordOf(gateway: TestGateway, answer: Response | string) {
  await gateway.settleBooks()
  return gateway.store.db.selectFrom('request').selectAll().where('id', '=', idOf(answer)).executeTakeFirstOrThrow()
}

export async function attemptsOf(gateway: TestGateway, answer: Response | string) {
  await gateway.settleBooks()
  const attempts = gateway.store.db.selectFrom('attempt').selectAll().where('request_id', '=', idOf(answer))
  return attempts.orderBy('created_at').execute()
}

function idOf(answer: Response | string): string {
  return typeof answer === 'string' ? answer : (answer.headers.get('x-request-id') ?? '')
}

/** The holds of one account, oldest first. Only with strict books, because leased ones keep holds in a journal. */
export async function holdsOf({ store }: TestGateway, accountId: string) {
  return store.db.selectFrom('hold').selectAll().where('account_id', '=', accountId).orderBy('created_at').execute()
}

/** The sum of all entries under a name such as `platform:loss`. */
export async function booked(gateway: TestGateway, account: string): Promise<Nano> {
  await gateway.settleBooks()
  const rows = await gateway.store.db.selectFrom('entry').select('amount').where('account', '=', account).execute()
  return nano(rows.reduce((sum, { amount }) => sum + amount, 0n))
}

/** The newest request of an account, for tests in which the client never got an answer with its id. */
export async function lastRequestOf(gateway: TestGateway, accountId: string) {
  await gateway.settleBooks()
  return gateway.store.db
    .selectFrom('request')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/** Waits until the simulated vendor notes on its bill that it was hung up on in the middle of this request. */
export async function untilVendorStopped(gateway: TestGateway, requestId: string): Promise<void> {
  const ids = new Set((await attemptsOf(gateway, requestId)).map(({ id }) => id))
  await until(async () => (await gateway.bill()).some(({ ref, status }) => ids.has(ref) && status === 499))
}
