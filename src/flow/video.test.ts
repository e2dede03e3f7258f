import { expect, test } from 'bun:test'
import { newRequestId } from '../base/ids.ts'
import { eachEngine } from '../../test/support/engines.ts'
import { videoVendor } from '../../test/support/video-vendor.ts'
import { fundedAccount } from '../../test/support/ledger.ts'
import { accountId, dollars, makeTaskWorld, model, orderOf } from '../../test/support/tasks.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import type { Ordered } from './order.ts'
import { placeVideo, type VideoParts } from './video.ts'

eachEngine('a video order', (open) => {
  test('an error after the order was placed tells the client not to retry', async () => {
    const store = await open()
    await fundedAccount(store, { id: accountId, amount: dollars(100n) })
    const vendor = videoVendor()
    const world = makeTaskWorld(store, { first: vendor })
    const { tasks, clock } = world
    const { ask } = orderOf()
    const parts: VideoParts = {
      tasks: { ...tasks, wait: () => Promise.reject(new TypeError('of our own')) },
      store,
      clock,
      models: () => new Map([['film', model]]),
      readAsk(_asked, lookUp) {
        lookUp('film')
        return { ...ask, wait: true, timeoutSeconds: 1 }
      },
      checkWebhook: () => Promise.resolve(),
    }
    const body = { model: 'film' }
    const ordered = {
      principal: { accountId, keyId: 'key_a', limits: null, caps: [], mayUse: () => true },
      requestId: newRequestId(),
      receivedAt: clock.now(),
      markVendorCalled() {},
      signal: new AbortController().signal,
      readBody: () => Promise.resolve({ body, files: [], raw: Buffer.from('{}'), bytes: 2 }),
      header: () => null,
    } as unknown as Ordered
    const thrown = await thrownBy(placeVideo(parts, ordered, () => null, undefined))
    expect(thrown).toMatchObject({ kind: 'bug', details: { shouldRetry: false } })
    expect(vendor.tasks.size).toBe(1)
    await world.close()
  })
})
