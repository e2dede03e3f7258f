import { expect, test } from 'bun:test'
import { gatewayForTests, until } from '../support/gateway.ts'
import { setLimits } from '../support/limits.ts'

const gateway = gatewayForTests({ mode: 'leased' })

const says = (content: string, more: Record<string, unknown> = {}) => ({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content }],
  ...more,
})

async function customer(limits: Parameters<typeof setLimits>[2]) {
  const { key, keyId, id } = await gateway.account({ dollars: '1' })
  await setLimits(gateway, keyId, limits)
  const send = (body: unknown) => gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })
  return { key, id, send }
}

test('requests beyond the limit per minute are a 429, and every answer says how many are left', async () => {
  const { key, id, send } = await customer({ requestsPerMinute: 3 })
  const before = (await gateway.calls()).length
  const first = await send(says('Hi'))
  expect(first.headers.get('x-ratelimit-limit-requests')).toBe('3')
  expect(first.headers.get('x-ratelimit-remaining-requests')).toBe('2')
  expect(first.headers.get('x-ratelimit-reset-requests')).toMatch(/^\d+m?s$|^1m0s$/)
  // A request that is refused for its body counts, and its response says so too.
  const bad = await send({ model: 'gpt-4o-mini' })
  expect(bad.status).toBe(400)
  expect(bad.headers.get('x-ratelimit-remaining-requests')).toBe('1')
  const list = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  expect(list.headers.get('x-ratelimit-remaining-requests')).toBe('0')
  const spentBefore = (await gateway.balance(id)).posted
  const refused = await send(says('Hi'))
  expect(refused.status).toBe(429)
  expect(await refused.json()).toMatchObject({ error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } })
  expect(Number(refused.headers.get('retry-after'))).toBeWithin(1, 61)
  expect((await gateway.calls()).length).toBe(before + 1)
  expect((await gateway.balance(id)).posted).toBe(spentBefore)
})

test('the place of a concurrent request is free again however its answer ends', async () => {
  const { send } = await customer({ concurrent: 1 })
  const streaming = await send(says('Hi sandbox:pace=100 sandbox:tokens=20', { stream: true }))
  expect((await send(says('Hi'))).status).toBe(429)
  await streaming.text()
  expect((await send(says('Hi'))).status).toBe(200)
  expect((await send(says('Hi sandbox:status=503'))).status).toBe(502)
  // A stream that breaks off before any output is released, not settled.
  const brokenOff = await send(says('Hi sandbox:cut=0', { stream: true }))
  expect(brokenOff.status).toBe(200)
  expect(await brokenOff.text()).toContain('upstream_failed')
  expect((await send(says('Hi', { temperature: 9 }))).status).toBe(400)
  expect((await send(says('Hi', { model: 'no-such-model' }))).status).toBe(404)
  expect((await send(says('Hi'))).status).toBe(200)
  const left = await send(says('Hi sandbox:endless sandbox:pace=5', { stream: true }))
  const reader = left.body?.getReader()
  await reader?.read()
  await reader?.cancel()
  await until(async () => (await send(says('Hi'))).status === 200)
})

test('the place of an order is free again once the video is ordered, refused or waited for', async () => {
  const { key } = await customer({ concurrent: 1 })
  const order = (more: object, query = '') => {
    const body = { model: 'wan2.6-t2v', input: { prompt: 'A fox. sandbox:slow=1' }, ...more }
    return gateway.post(`/v1/videos/generations${query}`, body, { authorization: `Bearer ${key}` })
  }
  expect((await order({ duration: 999 })).status).toBe(400)
  expect((await order({})).status).toBe(202)
  expect((await order({}, '?wait=true')).status).toBe(200)
  expect((await order({ duration: 999 })).status).toBe(400)
})

test('tokens per minute are estimated on entry and corrected by the usage', async () => {
  const { send } = await customer({ tokensPerMinute: 400 })
  const first = await send(says('Hi sandbox:usage=350'))
  expect(first.status).toBe(200)
  expect(first.headers.get('x-ratelimit-limit-tokens')).toBe('400')
  await first.text()
  const second = await send(says('a few more words '.repeat(20)))
  expect(second.status).toBe(429)
  expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0)
  const { error } = (await second.json()) as { error: { message: string } }
  const told = /estimated at (\d+) tokens; this key has (\d+) of its 400 tokens per minute left/.exec(error.message)
  expect(Number(told?.[1])).toBeWithin(51, 400)
  // The tokens of a request that was refused are not counted.
  expect(second.headers.get('x-ratelimit-remaining-tokens')).toBe(told?.[2] ?? '')
  expect(Number(told?.[2])).toBeWithin(1, 51)
  expect((await send(says('Hi'))).status).toBe(200)
})

test('a request of more tokens than a minute has is told not to retry', async () => {
  const { key, send } = await customer({ tokensPerMinute: 50 })
  const long = says('a few more words '.repeat(200))
  const idempotent = () =>
    gateway.post('/v1/chat/completions', long, { authorization: `Bearer ${key}`, 'idempotency-key': 'too-long' })
  for (const refused of [await send(long), await idempotent(), await idempotent()]) {
    expect(refused.status).toBe(429)
    const { error } = (await refused.json()) as { error: { message: string } }
    expect(error.message).toMatch(/^This request is estimated at \d{3,4} tokens, and this key may use 50 a minute: /)
    expect(refused.headers.get('retry-after')).toBeNull()
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(refused.headers.get('x-ratelimit-remaining-tokens')).toBe('50')
  }
  expect((await send(says('Hi'))).status).toBe(200)
})
