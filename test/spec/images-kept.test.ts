import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readImageHead } from '../../src/base/image-head.ts'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { startTestGateway, type TestGateway, until } from '../support/gateway.ts'
import { connect } from '../support/mcp.ts'
import { attemptsOf, lastRequestOf, recordOf } from '../support/records.ts'
import { startTinyS3 } from '../support/s3.ts'

// Where a vendor gives bytes and a link is wanted, or the operator keeps everything, the link is the gateway's own.

const ask = { prompt: 'A cat on a roof', response_format: 'url' }
const models = ['gpt-image-2', 'qwen-image-2.0', 'doubao-seedream-4-0', 'imagen-4.0-generate-001']

async function linkOf(gateway: TestGateway, model: string): Promise<string> {
  const response = await gateway.post('/v1/images/generations', { ...ask, model })
  const { data } = (await response.json()) as { data: { url: string }[] }
  return data[0]?.url ?? ''
}

describe('artifacts: { keep: true }', () => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startTestGateway({ yaml: 'artifacts: { keep: true }' })
  })
  afterAll(() => gateway.close())

  test.each(models)('an image of %s is kept and served from the gateway’s own link', async (model) => {
    const link = await linkOf(gateway, model)
    expect(link).toStartWith(`${gateway.url}/artifacts/`)
    const kept = await fetch(link)
    expect(kept.headers.get('content-type')).toMatch(/^image\/(?:png|jpeg)$/)
    expect(readImageHead(new Uint8Array(await kept.arrayBuffer()))).toMatchObject({ width: expect.any(Number) })
    await gateway.assertBooks()
  })
})

describe('when there is no room to keep images', () => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startTestGateway({ yaml: 'artifacts: { bytesMax: 1024 }' })
  })
  afterAll(() => gateway.close())

  test('the vendor’s own link is passed on', async () => {
    expect(await linkOf(gateway, 'qwen-image-2.0')).toStartWith(gateway.sandboxUrl ?? 'no simulator')
  })

  test('an image that came as bytes is a 503 and not charged, and its vendor cost is recorded', async () => {
    const { posted } = await gateway.balance()
    const response = await gateway.post('/v1/images/generations', { ...ask, model: 'imagen-4.0-generate-001' })
    // The vendor was paid: a retry would pay it again.
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([503, 'false'])
    expect((await gateway.balance()).posted).toBe(posted)
    const [attempt] = await attemptsOf(gateway, response)
    expect(attempt).toMatchObject({ status: 200, vendor_cost: 40_000_000n })
    await gateway.assertBooks()
  })

  test('the tools give an image and speech without a link, because they are paid for', async () => {
    const client = await connect(gateway, 'modern')
    const image = await client.call('generate_image', { model: 'gpt-image-2', prompt: 'A cat on a roof' })
    const speech = await client.call('speak', { model: 'qwen3-tts-flash', input: 'Good morning.' })
    expect(image.content.map(({ type }) => type)).toEqual(['image', 'text'])
    expect(speech.content.map(({ type }) => type)).toEqual(['audio', 'text'])
    await client.close()
  })
})

test('a client that leaves during a slow upload to the bucket is a 499, not a bucket failure', async () => {
  const s3 = startTinyS3()
  const credentials = 'region: eu-test, accessKeyId: AKTEST, secretAccessKey: a-secret-for-tests'
  const bucket = `{ endpoint: "${s3.endpoint}", bucket: results, ${credentials} }`
  const gateway = await startTestGateway({ yaml: `artifacts: { s3: ${bucket} }` })
  s3.hang()
  const leaving = new AbortController()
  const left = fetch(`${gateway.url}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...ask, model: 'imagen-4.0-generate-001' }),
    signal: leaving.signal,
  }).catch(() => {})
  await until(() => s3.seen.length > 0)
  leaving.abort()
  await left
  await until(async () => (await lastRequestOf(gateway, gateway.accountId)) !== undefined)
  expect(await lastRequestOf(gateway, gateway.accountId)).toMatchObject({ status: 499, cost: 0n })
  expect(gateway.logged.filter((line) => line.includes('Kept results'))).toEqual([])
  await gateway.assertBooks()
  await gateway.close()
  await s3.stop()
})

describe('a server of the operator that was asked for bytes', () => {
  const bytes = drawImage({ width: 64, height: 32, format: 'png', seed: 1 })
  const base64 = Buffer.from(bytes).toString('base64')
  let made: unknown
  let vendor: ReturnType<typeof Bun.serve>
  let gateway: TestGateway
  beforeAll(async () => {
    vendor = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ method }) => (method === 'GET' ? new Response(bytes) : Response.json({ created: 1, data: [made] })),
    })
    const yaml = `
sandbox: false
channels: [{ id: own, vendor: compatible, baseUrl: "http://127.0.0.1:${vendor.port}/v1" }]
models: [{ id: drawer, capability: images, channels: [{ channel: own }], prices: { perImage: "0.01" } }]`
    gateway = await startTestGateway({ yaml })
  })
  afterAll(async () => {
    await gateway.close()
    await vendor.stop(true)
  })

  test.each([
    ['a link', () => ({ url: `http://127.0.0.1:${vendor.port}/x.png`, b64_json: null })],
    ['a data URL as the link', () => ({ url: `data:image/png;base64,${base64}` })],
    ['a data URL as the bytes', () => ({ b64_json: `data:image/png;base64,${base64}` })],
  ])('%s becomes the link or the bytes that the client wants', async (_name, member) => {
    made = member()
    const link = await linkOf(gateway, 'drawer')
    expect(link).toStartWith(`${gateway.url}/artifacts/`)
    expect(Buffer.from(await (await fetch(link)).arrayBuffer()).toString('base64')).toBe(base64)
    const response = await gateway.post('/v1/images/generations', {
      ...ask,
      model: 'drawer',
      response_format: 'b64_json',
    })
    expect(await response.json()).toMatchObject({ data: [{ b64_json: base64 }] })
    expect(await recordOf(gateway, response)).toMatchObject({ status: 200, cost: 10_000_000n })
    await gateway.assertBooks()
  })
})
