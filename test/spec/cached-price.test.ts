import { afterAll, beforeAll, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { recordOf } from '../support/records.ts'

// Alibaba and Fireworks find what they have read before by themselves, and charge less for it.

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway()
})
afterAll(async () => {
  // The simulators' bill has the prices of cached input too.
  await gateway.assertBooks()
  await gateway.close()
})

const page = 'Every page of the handbook is read again with each question. '

test.each([
  { model: 'qwen-plus', pages: 200, inputPrice: 400, cachedPrice: 80, outputPrice: 1_200 },
  // More than 32,000 tokens.
  { model: 'qwen3-max', pages: 3_000, inputPrice: 2_400, cachedPrice: 480, outputPrice: 12_000 },
  { model: 'accounts-fireworks-models-gpt-oss-120b', pages: 200, inputPrice: 150, cachedPrice: 15, outputPrice: 600 },
])('a prompt of $pages pages that $model has in its cache costs $cachedPrice nano-dollars a token', async (row) => {
  const { model, pages, inputPrice, cachedPrice, outputPrice } = row
  const handbook = page.repeat(pages)
  const ask = async (question: string) => {
    const messages = [
      { role: 'system', content: handbook },
      { role: 'user', content: question },
    ]
    const response = await gateway.post('/v1/chat/completions', { model, messages })
    expect(response.status).toBe(200)
    await response.text()
    return recordOf(gateway, response)
  }
  expect((await ask('What is on the first page?')).usage?.cachedInput).toBe(0)
  const { usage, cost, basis } = await ask('And on the second?')
  const { input = 0, cachedInput = 0, output = 0 } = usage ?? {}
  expect(basis).toBe('vendor')
  expect(cachedInput).toBeGreaterThan(1_024)
  expect(cost).toBe(nano(BigInt(input * inputPrice + cachedInput * cachedPrice + output * outputPrice)))
})
