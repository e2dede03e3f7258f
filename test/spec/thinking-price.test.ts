import { afterAll, beforeAll, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { says } from '../support/streams.ts'

// Alibaba has a separate output price for answers with reasoning.

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway()
})
afterAll(async () => {
  await gateway.assertBooks()
  await gateway.close()
})

test.each([
  [{}, 200],
  [{ enable_thinking: false }, 200],
  [{ enable_thinking: true }, 500],
  [{ reasoning_effort: 'low' }, 500],
  [{ enable_thinking: true, stream: true }, 500],
])('qwen-turbo asked with %j costs %d nano-dollars per output token', async (more, outputPrice) => {
  const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'qwen-turbo', ...more }))
  expect(response.status).toBe(200)
  await response.text()
  const { usage, cost, basis } = await recordOf(gateway, response)
  const { input = 0, output = 0, reasoning = 0 } = usage ?? {}
  expect([basis, reasoning > 0]).toEqual(['vendor', outputPrice === 500])
  expect(cost).toBe(nano(BigInt(input * 50 + output * outputPrice)))
  const [attempt] = await attemptsOf(gateway, response)
  const bill = (await (await fetch(`${gateway.sandboxUrl}/__bill?ref=${attempt?.id}`)).json()) as object
  expect(bill).toMatchObject({ data: [{ cost: `0.${String(cost).padStart(9, '0').replace(/0+$/, '')}` }] })
})

// At the vendor, `max_tokens` alone does not cap the reasoning, which could then cost more than the hold.
test.each([
  ['/v1/chat/completions', { max_tokens: 10, enable_thinking: true }],
  ['/v1/chat/completions', { max_completion_tokens: 10, reasoning_effort: 'high' }],
  ['/v1/messages', { max_tokens: 10, output_config: { effort: 'high' } }],
])('%s: qwen-plus counts reasoning within the cap of %j, and all of it is charged', async (path, more) => {
  const response = await gateway.post(path, says('Hello!', { model: 'qwen-plus', ...more }))
  expect(response.status).toBe(200)
  await response.text()
  const { usage, cost, basis } = await recordOf(gateway, response)
  expect([basis, usage?.output, usage?.reasoning]).toEqual(['vendor', 10, 10])
  expect(cost).toBe(nano(BigInt((usage?.input ?? 0) * 400 + 10 * 1_200)))
})
