import { expect, test } from 'bun:test'
import { formatDollars, nano } from '../../src/base/money.ts'
import { makeStrictBilling } from '../../src/billing/strict.ts'
import { type FlakyStore, flakyStore } from '../support/flaky-store.ts'
import { gatewayForTests, until } from '../support/gateway.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { says } from '../support/streams.ts'

let database: FlakyStore
const gateway = gatewayForTests({
  billing({ store, ...parts }) {
    database = flakyStore(store)
    return makeStrictBilling({ ...parts, store: database.store })
  },
})

/** Sends a request, and takes the database away once the vendor has been asked. */
async function askedBefore(fault: Partial<FlakyStore>, body: unknown): Promise<Response> {
  const before = await gateway.callCount()
  const response = gateway.post('/v1/chat/completions', body)
  await until(async () => (await gateway.callCount()) > before)
  Object.assign(database, fault)
  return response
}

const slow = 'Hello! sandbox:delay=1000'

test('a request that fails while the database is away is released and recorded when it is back', async () => {
  const response = await askedBefore({ isAway: true }, says(`${slow} sandbox:charge-then-fail=400`))
  expect(response.status).toBe(400)
  expect((await gateway.store.db.selectFrom('account').select('held').executeTakeFirst())?.held).toBeGreaterThan(0n)
  database.isAway = false
  expect((await gateway.balance()).held).toBe(nano(0n))
  expect(await recordOf(gateway, response)).toMatchObject({ status: 400, cost: nano(0n) })
  const billed = (await gateway.bill()).map(({ ref }) => ref)
  expect((await attemptsOf(gateway, response)).map(({ id }) => id)).toEqual(billed.slice(-1))
})

test.each([false, true])(
  'an answer whose charge was written but not confirmed is delivered and charged once; streamed: %p',
  async (stream) => {
    const { posted } = await gateway.balance()
    const response = await askedBefore({ answersToLose: 1, staysAway: true }, says(slow, { stream }))
    expect(response.status).toBe(200)
    const text = await response.text()
    if (stream) expect(text).toContain('[DONE]')
    expect(database.isAway).toBe(true)
    Object.assign(database, { isAway: false, staysAway: false })
    const charged = nano(posted - (await gateway.balance()).posted)
    expect(charged).toBeGreaterThan(0n)
    expect(await recordOf(gateway, response)).toMatchObject({ status: 200, cost: charged })
    if (!stream) expect(response.headers.get('x-turnpike-cost')).toBe(formatDollars(charged))
  },
)
