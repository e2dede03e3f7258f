import { afterEach, describe, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { standingClock } from '../support/movable-clock.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { says } from '../support/streams.ts'
import { answer, completion, startVendor, type RawVendor } from '../support/vendor.ts'

// A vendor of images that refuses under status 200 means the same as under an error status.

let gateway: TestGateway
let vendor: RawVendor
afterEach(async () => {
  await gateway.assertBooks()
  await gateway.close()
  await vendor.stop()
})

const isFirst = (head: string) => head.includes('Bearer first-key')

/** A model of the catalogue, or one that the configuration has to define. */
type Sold = string | { readonly id: string; readonly price?: string; readonly capability?: string }

/** Two channels at one vendor, which answers the first key with `said` and the other with `made`. */
async function open(vendorId: string, sold: Sold, said: unknown, made: unknown): Promise<void> {
  const { id, price = 'perImage: "0.05"', capability } = typeof sold === 'string' ? { id: sold } : sold
  vendor = await startVendor((socket, { head }) => {
    socket.write(answer(200, JSON.stringify(isFirst(head) ? said : made)))
  })
  gateway = await startTestGateway({
    // So that a rest of one second does not end, however slow the machine is.
    clock: standingClock(),
    yaml: `
sandbox: false
channels:
  - { id: main, vendor: ${vendorId}, baseUrl: "${vendor.baseUrl}", keys: ["first-key"] }
  - { id: spare, vendor: ${vendorId}, baseUrl: "${vendor.baseUrl}", keys: ["other-key"], priority: 1 }
models:
  - { id: ${id}, prices: { ${price} }, ${capability === undefined ? '' : `capability: ${capability}, vendor: ${vendorId}`} }
`,
  })
}

const draw = (model: string) => gateway.post('/v1/images/generations', { model, prompt: 'a cat' })
const callsOfFirst = () => vendor.requests.filter(({ head }) => isFirst(head)).length
const complaints = () => gateway.logged.filter((line) => line.includes('a vendor refuses a key'))

const link = 'https://results.example/x.png'
const qwen = {
  output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: [{ image: link }] } }] },
  usage: { image_count: 1, width: 1024, height: 1024 },
  request_id: 'r',
}
const seedream = { data: [{ url: link, size: '2048x2048' }], usage: { generated_images: 1 } }

const native = (code: string) => ({ code, message: 'so it is', request_id: 'r' })
const common = (type: string, code: string) => ({ error: { code, message: 'so it is', type } })

describe.each([
  ['dashscope', 'qwen-image-2.0', native('Arrearage'), qwen, 1],
  ['dashscope', 'qwen-image-2.0', native('Throttling.RateQuota'), qwen, 0],
  ['ark', 'doubao-seedream-4-0', common('Forbidden', 'AccountOverdueError'), seedream, 1],
  ['ark', 'doubao-seedream-4-0', common('TooManyRequests', 'ModelAccountIpmRateLimitExceeded'), seedream, 0],
])('%s, asked for %s, refuses with %j', (vendorId, id, said, made, complaintsDue) => {
  test('the key rests, and the other channel answers', async () => {
    await open(vendorId, id, said, made)
    const first = await draw(id)
    expect(first.status).toBe(200)
    expect(await first.json()).toMatchObject({ data: [{ url: link }] })
    expect((await draw(id)).status).toBe(200)
    expect(callsOfFirst()).toBe(1)
    expect(complaints()).toHaveLength(complaintsDue)

    expect(await recordOf(gateway, first)).toMatchObject({ status: 200, basis: 'vendor', cost: 50_000_000n })
    const attempts = await attemptsOf(gateway, first)
    expect(attempts.toSorted((a, b) => a.channel.localeCompare(b.channel))).toMatchObject([
      { channel: 'main', delivered: false, vendor_cost: 0n },
      { channel: 'spare', delivered: true, vendor_cost: 50_000_000n },
    ])
  })
})

const bytes = { data: [{ b64_json: 'iVBORw0KGgo=' }] }
const vector = { data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 2 } }

// OpenRouter and others give the status itself as the code, and the common protocol gives words.
describe.each([
  [
    '/v1/images/generations',
    { model: 'pictures', prompt: 'a cat', response_format: 'b64_json' },
    { id: 'pictures', capability: 'images' },
    bytes,
    50_000_000n,
  ],
  [
    '/v1/embeddings',
    { model: 'vectors', input: 'a cat' },
    { id: 'vectors', capability: 'embeddings', price: 'inputPerMillion: "1"' },
    vector,
    2_000n,
  ],
])('a vendor of the common protocol on %s', (path, body, sold, made, cost) => {
  test.each([
    [{ message: 'No credits.', code: 402 }, 1],
    [{ message: 'You exceeded your current quota.', type: 'insufficient_quota', code: 'insufficient_quota' }, 1],
    [{ message: 'Rate limit exceeded.', code: 429 }, 0],
    [{ message: 'No successful answers.', code: 502 }, 0],
  ])('after %j the other channel answers, and the first call costs nothing', async (error, complaintsDue) => {
    await open('compatible', sold, { error }, made)
    const response = await gateway.post(path, body)
    expect(response.status).toBe(200)
    expect(complaints()).toHaveLength(complaintsDue)
    expect(await recordOf(gateway, response)).toMatchObject({ status: 200, cost })
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.find(({ channel }) => channel === 'main')).toMatchObject({ delivered: false, vendor_cost: 0n })
  })

  test.each([{}, { data: null }, { data: [] }])(
    'a refusal that comes with %j is a 400 that costs nothing',
    async (empty) => {
      await open('compatible', sold, { ...empty, error: { message: 'so it is', code: 400 } }, made)
      const refused = await gateway.post(path, body)
      expect(refused.status).toBe(400)
      expect(await refused.json()).toMatchObject({ error: { message: 'so it is' } })
      expect(vendor.requests).toHaveLength(1)
      expect(await recordOf(gateway, refused)).toMatchObject({ cost: 0n })
    },
  )
})

test.each([
  ['dashscope', 'qwen-image-2.0', native('DataInspectionFailed'), qwen, 'content_policy_violation'],
  [
    'ark',
    'doubao-seedream-4-0',
    common('BadRequest', 'InputTextSensitiveContentDetected'),
    seedream,
    'InputTextSensitiveContentDetected',
  ],
])('%s: a refusal of the request is a 400 that costs nothing', async (vendorId, id, said, made, code) => {
  await open(vendorId, id, said, made)
  const refused = await draw(id)
  expect(refused.status).toBe(400)
  expect(await refused.json()).toMatchObject({ error: { message: 'so it is', code } })
  expect(vendor.requests).toHaveLength(1)
  expect(await recordOf(gateway, refused)).toMatchObject({ cost: 0n })
})

const numbered = (code: number) => ({ choices: null, base_resp: { status_code: code, status_msg: 'so it is' } })
const talk = () => gateway.post('/v1/chat/completions', says('Hello!', { model: 'talker' }))

describe('MiniMax, which refuses a chat with a number of its own', () => {
  const sold = { id: 'talker', capability: 'chat', price: 'inputPerMillion: "1", outputPerMillion: "1"' }
  const made = { ...(JSON.parse(completion('Hi')) as object), base_resp: { status_code: 0, status_msg: '' } }

  test.each([
    [1004, 1],
    [1008, 1],
    [1002, 0],
    [1013, 0],
  ])('after %d the other channel answers, and the first call costs nothing', async (code, complaintsDue) => {
    await open('minimax', sold, numbered(code), made)
    const response = await talk()
    expect(response.status).toBe(200)
    expect(complaints()).toHaveLength(complaintsDue)
    expect((await attemptsOf(gateway, response)).find(({ channel }) => channel === 'main')).toMatchObject({
      delivered: false,
      vendor_cost: 0n,
    })
  })

  test('a refusal of the request is a 400 with its message, and costs nothing', async () => {
    await open('minimax', sold, numbered(1026), made)
    const refused = await talk()
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { message: 'so it is' } }])
    expect(vendor.requests).toHaveLength(1)
    expect(await recordOf(gateway, refused)).toMatchObject({ cost: 0n })
  })
})
