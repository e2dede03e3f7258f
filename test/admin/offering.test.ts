import { expect, test } from 'bun:test'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { operatorOf } from '../support/operator.ts'
import { says } from '../support/streams.ts'
import { answer, channelsTo, completion, startVendor } from '../support/vendor.ts'

test('models are listed with their prices, and channels without their credentials', async () => {
  const vendorKey = 'vendor-key-0123456789'
  const gateway = await startTestGateway({
    yaml: `channels:
  - { id: one, vendor: openai, keys: ["${vendorKey}"], baseUrl: "https://gateway.example/v1" }
models: [{ id: gpt-4o, hidden: true }, { id: flat, capability: chat, vendor: openai, prices: { perRequest: "0.01", inputPerMillion: "0", outputPerMillion: "0" } }]
sandbox: false`,
  })
  try {
    const operator = operatorOf(gateway)
    const models = await operator.all<Record<string, unknown>>('/admin/models')
    const named = (id: string) => models.find((model) => model['id'] === id)
    expect(named('gpt-4o')).toEqual({ id: 'gpt-4o', sold: false, why: 'hidden by the operator' })
    expect(named('flat')).toMatchObject({ sold: true, vendor: 'openai', prices: { perRequest: '0.01' } })
    expect(named('gpt-4o-mini')).toMatchObject({
      sold: true,
      confidence: expect.any(String),
      prices: expect.any(Object),
      context_tokens: 128_000,
      output_tokens_max: 16_384,
    })
    expect(named('gpt-4o-mini')).toMatchObject({ end: { date: '2027-01-14', source: expect.any(String) } })
    expect(named('gpt-4o-mini')).not.toHaveProperty('alias_of')
    expect(named('gpt-5.2')).not.toHaveProperty('end')
    expect(named('text-embedding-3-small')).not.toHaveProperty('output_tokens_max')
    expect(named('deepseek-v4-flash')).toMatchObject({ sold: false, why: expect.stringContaining('no channel') })
    expect(await operator.all('/admin/models', 9)).toEqual(models as never)
    expect(named('gpt-4o-mini-2024-07-18')).toMatchObject({ sold: true, alias_of: 'gpt-4o-mini' })
    // By default, accounts of the current mode are listed.
    expect((await operator.all<{ mode: string }>('/admin/accounts')).map(({ mode }) => mode)).toEqual(['real'])

    const channels = await operator.all<Record<string, unknown>>('/admin/channels')
    expect(channels).toContainEqual({
      id: 'one',
      vendor: 'openai',
      base_url: 'https://gateway.example/v1',
      weight: 1,
      priority: 0,
      health: 'ok',
      credentials: { count: 1, resting: 0 },
      unknown_task_states: { count: 0, last: null },
    })
    expect(JSON.stringify(channels)).not.toContain('vendor-key')
  } finally {
    await gateway.close()
  }
})

test('a channel in sandbox mode has the address of its simulator and does not rest', async () => {
  const gateway = await startTestGateway()
  try {
    const operator = operatorOf(gateway)
    await gateway.post('/v1/chat/completions', says('sandbox:status=401'))
    const channels = await operator.all<Record<string, unknown>>('/admin/channels')
    const openai = channels.find(({ id }) => id === 'openai')
    expect(openai).toMatchObject({ health: 'ok', base_url: `${gateway.sandboxUrl}/openai/v1` })
    await gateway.assertBooks()
  } finally {
    await gateway.close()
  }
})

async function healthAfterChat(gateway: TestGateway) {
  await gateway.post('/v1/chat/completions', says('Hi', { model: 'm' }))
  const [channel] = await operatorOf(gateway).all<Record<string, unknown>>('/admin/channels')
  return { health: channel?.['health'], credentials: channel?.['credentials'] }
}

test('a channel whose vendor fails again and again is degraded, and works again after an answer', async () => {
  let status = 500
  const vendor = await startVendor(
    (socket) => void socket.write(answer(status, status === 200 ? completion('Hi') : '{}')),
  )
  const gateway = await startTestGateway({ yaml: channelsTo({ v0: { ...vendor, key: 'key-one' } }) })
  try {
    const health = () => healthAfterChat(gateway)
    await until(async () => (await health()).health !== 'ok')
    expect(await health()).toEqual({ health: 'degraded', credentials: { count: 1, resting: 0 } })
    status = 200
    expect(await health()).toEqual({ health: 'ok', credentials: { count: 1, resting: 0 } })
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})

test('a credential that its vendor refuses rests, and its channel rests with the last credential', async () => {
  const refusal = JSON.stringify({ error: { message: 'no', code: 'invalid_api_key' } })
  let good = 'key-two'
  const vendor = await startVendor((socket, { head }) => {
    socket.write(head.includes(good) ? answer(200, completion('Hi')) : answer(401, refusal))
  })
  const gateway = await startTestGateway({ yaml: channelsTo({ v0: { ...vendor, key: 'key-one", "key-two' } }) })
  try {
    const health = () => healthAfterChat(gateway)
    // Either credential may be used first.
    await until(async () => (await health()).health !== 'ok')
    expect(await health()).toEqual({ health: 'degraded', credentials: { count: 2, resting: 1 } })
    good = 'none'
    expect(await health()).toEqual({ health: 'resting', credentials: { count: 2, resting: 2 } })
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})
