import { expect } from 'bun:test'
import { until, type TestGateway } from './gateway.ts'

/**
 * A refused request costs nothing: no vendor is called, no account changes by a nano, and no hold is left. Returns the
 * answer for further assertions. In real mode the test says how to count the vendor's calls.
 */
export async function refusedForFree<T>(
  gateway: TestGateway,
  send: () => Promise<T>,
  vendorCalls: () => number | Promise<number> = () => gateway.callCount(),
): Promise<T> {
  await settled(gateway)
  const before = { calls: await vendorCalls(), ...(await books(gateway)) }
  const answer = await send()
  await settled(gateway)
  expect({ calls: await vendorCalls(), ...(await books(gateway)) }).toEqual(before)
  return answer
}

async function settled(gateway: TestGateway): Promise<void> {
  await until(() => gateway.openHolds() === 0)
  await gateway.settleBooks()
}

async function books({ store }: TestGateway) {
  const accounts = await store.db.selectFrom('account').select(['id', 'posted']).orderBy('id').execute()
  const holds = await store.db.selectFrom('hold').select('id').where('state', '=', 'open').execute()
  const postings = await store.db.selectFrom('txn').select('id').execute()
  expect(holds).toEqual([])
  return { accounts, postings: postings.length }
}
