import { expect, test } from 'bun:test'
import { movableClock } from '../../test/support/movable-clock.ts'
import { Deadlines } from '../base/deadlines.ts'
import { nano, pico } from '../base/money.ts'
import type { Progress } from '../billing/billing.ts'
import type { Counted, PriceList } from '../capabilities/usage.ts'
import { countLegs, type Leg } from './legs.ts'
import { Marks } from './marks.ts'

function listOf(request: bigint, output: bigint): PriceList {
  const rates = { request: pico(request), output: pico(output) }
  return { version: '', rates, tiers: [], perImage: {}, perSecond: {}, perVideo: {}, perVideoToken: {} }
}

function legOf(id: string, counted: Counted | undefined): Leg {
  return { attemptId: id as Leg['attemptId'], count: () => counted }
}

/** What is put on record once enough was delivered. */
function marked(legs: readonly Leg[]): Progress | undefined {
  let progress: Progress | undefined
  const routed = {
    model: { prices: listOf(7_000n, 4_000n), costs: listOf(3_000n, 2_000n) },
    funds: { mark: (workOut: () => Progress | undefined) => void (progress = workOut()) },
  }
  const marks = new Marks(routed as never, { legs } as never, new Deadlines(movableClock()), {
    broken() {},
    passed() {},
  })
  marks.delivered(1024 * 1024)
  marks.end()
  return progress
}

const told: Counted = { usage: { output: 5 }, basis: 'vendor' }
const guessed: Counted = { usage: { output: 6 }, basis: 'estimated' }
const countedOtherwise: Counted = { usage: { output: 1 }, vendorUsage: { output: 2 }, basis: 'estimated' }

test('a mark sums the usage of the calls that delivered, and prices each as one request', () => {
  const legs = [legOf('a', told), legOf('b', undefined), legOf('c', guessed), legOf('d', countedOtherwise)]
  expect(marked(legs)).toEqual({
    usage: { output: 12 },
    price: nano(3n * 7n + 12n * 4n),
    delivered: [
      { id: 'a', vendorCost: nano(13n) },
      { id: 'c', vendorCost: nano(15n) },
      { id: 'd', vendorCost: nano(7n) },
    ],
  })
})

test('no mark is made when nothing was delivered', () => {
  expect(marked([legOf('a', undefined)])).toBeUndefined()
})

test("the total of several calls is exact only when every call has the vendor's count", () => {
  expect(countLegs([legOf('a', told), legOf('b', told)])?.basis).toBe('vendor')
  expect(countLegs([legOf('a', told), legOf('b', guessed)])?.basis).toBe('estimated')
  expect(countLegs([legOf('a', told), legOf('b', undefined)])?.basis).toBe('estimated')
})
