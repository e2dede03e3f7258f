import { afterEach, beforeEach, expect, test } from 'bun:test'
import { accountId, fundedAccount } from '../../test/support/ledger.ts'
import { zeroNano } from '../base/money.ts'
import { openStore, type Store } from '../store/open.ts'
import { addUsage } from '../store/rollups.ts'
import { wholeReport } from './usage.ts'

let store: Store
beforeEach(async () => {
  store = await openStore({ file: ':memory:' })
  await fundedAccount(store)
})
afterEach(() => store.close())

const used = {
  accountId,
  model: 'gpt-x',
  capability: 'chat',
  vendor: 'openai',
  createdAt: 0,
  cost: zeroNano,
  vendorCost: zeroNano,
  usage: null,
} as const

test('a report of many keys is read once, not once for each hundred of them', async () => {
  const count = 250
  await store.transaction((tx) =>
    addUsage(
      tx,
      Array.from({ length: count }, (_, i) => ({ ...used, keyId: `key_${i}` })),
    ),
  )
  let reads = 0
  const counted: Store = {
    ...store,
    snapshot(...asked) {
      reads++
      return store.snapshot(...asked)
    },
  }
  const { data, next } = await wholeReport(counted, { scope: 'every-account' }, 'key')
  expect([data.length, new Set(data.map(({ key }) => key)).size, next, reads]).toEqual([count, count, null, 1])
})
