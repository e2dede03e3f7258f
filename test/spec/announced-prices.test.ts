import { afterAll, beforeAll, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { standingClock } from '../support/movable-clock.ts'
import { recordOf } from '../support/records.ts'
import { says } from '../support/streams.ts'

// Google doubles the prices of Gemini 3.8 Flash with the year 2027. Without its thinking, a token of its answers costs
// 3750 nano-dollars until then, and one of the question 750.

const clock = standingClock(Date.parse('2026-12-31T23:59:59.900Z'))
let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({ clock })
})
afterAll(async () => {
  // The simulators' bill has the same prices at the same time.
  await gateway.assertBooks()
  await gateway.close()
})

const ask = (more: object) =>
  gateway.post('/v1/chat/completions', says('Hello! sandbox:pace=20', { model: 'gemini-3.8-flash', ...more }))

async function chargedAndListed(response: Response, times: bigint) {
  const { usage, cost, basis } = await recordOf(gateway, response)
  const listed = nano((BigInt(usage?.input ?? 0) * 750n + BigInt(usage?.output ?? 0) * 3_750n) * times)
  return { basis, charged: cost, listed }
}

test('a request that began at the old prices is charged at them, and the next at the new, without a restart', async () => {
  const begun = await ask({ stream: true })
  expect(begun.status).toBe(200)
  clock.advance(100)
  await until(() => gateway.logged.some((line) => line.includes('announced for this time')))
  const next = await ask({})
  expect(next.status).toBe(200)
  await Promise.all([begun.text(), next.text()])

  const before = await chargedAndListed(begun, 1n)
  expect(before).toEqual({ basis: 'vendor', charged: before.listed, listed: before.listed })
  const after = await chargedAndListed(next, 2n)
  expect(after).toEqual({ basis: 'vendor', charged: after.listed, listed: after.listed })
})
