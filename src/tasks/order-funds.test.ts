import { expect, test } from 'bun:test'
import { nano } from '../base/money.ts'
import type { Store } from '../store/open.ts'
import {
  accountId,
  dollars,
  held,
  makeTaskWorld,
  moneyOf,
  orderOf,
  requestsOf,
  taskSuite,
} from '../../test/support/tasks.ts'
import { thrownBy } from '../../test/support/thrown.ts'

taskSuite('the money for a video order', ({ begin, within }) => {
  test('an order that its account has no funds for is not sent', () =>
    within(async ({ vendor, world }) => {
      const placed = await Promise.all(
        Array.from({ length: 40 }, () => world.order().catch((thrown: Error) => thrown.message)),
      )
      // A hundred dollars cover thirty-three holds of three.
      expect(placed.filter((one) => one === 'no funds')).toHaveLength(7)
      expect(vendor.tasks.size).toBe(33)
    }))

  test('leased money that a node gives back while an order is refused for it pays for that order', async () => {
    const { store, vendor, world } = await begin()
    const leased = nano(dollars(98n))
    await store.db.insertInto('node').values({ id: 'node_b', epoch: 1, turn: 0, seen_at: 0 }).execute()
    await store.db.insertInto('lease').values({ node: 'node_b', account_id: accountId, amount: leased }).execute()
    await store.db.updateTable('account').set({ held: leased }).execute()
    const hasty: Store = {
      ...store,
      async transaction(work) {
        const refused = await store.transaction(work)
        await store.db.deleteFrom('lease').execute()
        await store.db
          .updateTable('account')
          .set((eb) => ({ held: eb('held', '-', leased) }))
          .where('held', '>=', leased)
          .execute()
        return refused
      },
    }
    const placed = await makeTaskWorld(hasty, { first: vendor }).order()
    expect(placed.state).toBe('submitted')
    expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held })
    await world.close()
  })

  test('what an order reserves of its caps is held by its task, or given back when there is none', async () => {
    const ends: string[] = []
    const giveBack = () => void ends.push('given back')
    const heldByTask = () => void ends.push('held')
    const { store, vendor, world } = await begin({
      reserve: () => Promise.resolve({ kind: 'reserved', giveBack, heldByTask }),
    })
    await world.order()
    expect(ends[0]).toBe('held')
    expect(vendor.calls).toHaveLength(1)
    // An account that was disabled meanwhile is refused like a revoked key.
    await store.db.updateTable('account').set({ enabled: false }).where('id', '=', accountId).execute()
    ends.length = 0
    expect(await thrownBy(world.order())).toMatchObject({ kind: 'unauthenticated' })
    expect(ends).toEqual(['given back'])
    expect(vendor.calls).toHaveLength(1)
    await world.close()
  })

  test('an order beyond a spending cap is neither recorded nor sent', async () => {
    const available = nano(5n)
    const { store, vendor, world } = await begin({ reserve: () => Promise.resolve({ kind: 'no-funds', available }) })
    expect(await world.tasks.create(orderOf())).toEqual({ kind: 'no-funds', needed: held, available })
    expect([await requestsOf(store), vendor.calls]).toEqual([[], []])
    await world.close()
  })
})
