import { describe, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import type { Usage } from '../../src/capabilities/usage.ts'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { gatewayForTests, startTestGateway, until } from '../support/gateway.ts'
import { attemptsOf, booked, lastRequestOf, recordOf } from '../support/records.ts'
import { payloads, says } from '../support/streams.ts'
import { answer, event, startVendor, stream } from '../support/vendor.ts'

// Images whose vendor did not say what they used: the stream broke off, or its answer has no usage.

const gateway = gatewayForTests()

const path = '/v1/images/generations'
/** By OpenAI's list: a square image of medium quality, which is the simulator's default, and a preview. */
const [square, preview] = [1_056, 100]

type Made = { readonly events: string[]; readonly cost: bigint; readonly basis: string; readonly usage: Usage | null }

async function made(response: Response): Promise<Made> {
  expect(response.status).toBe(200)
  const text = await response.text()
  const { cost, basis, usage } = await recordOf(gateway, response)
  return { events: payloads(text), cost, basis, usage }
}

async function generate(model: string, word: string, more: object = {}): Promise<Made> {
  return made(await gateway.post(path, { model, prompt: `A hat ${word}`, ...more }))
}

async function edit(word: string, more: Record<string, string> = {}): Promise<Made> {
  const form = new FormData()
  const image = drawImage({ width: 64, height: 64, format: 'png', seed: 1 })
  form.append('image', new File([image], 'a.png', { type: 'image/png' }))
  for (const [name, value] of Object.entries({ model: 'gpt-image-1', prompt: `A hat ${word}`, ...more })) {
    form.append(name, value)
  }
  const headers = { authorization: `Bearer ${gateway.key}` }
  return made(await fetch(`${gateway.url}/v1/images/edits`, { method: 'POST', headers, body: form }))
}

const streamed = { stream: true, partial_images: 3 }
const isError = (event: string) => (JSON.parse(event) as { error?: unknown }).error !== undefined

describe('an image stream that breaks off', () => {
  test.each([
    ['gpt-image-1', 'cut=1', 1],
    ['gpt-image-1', 'eof=2', 2],
    ['gpt-image-1', 'midstream-error', 3],
    ['gpt-image-2', 'cut=1', 1],
    ['gpt-image-1-mini', 'cut=3', 3],
  ])('%s is charged for the previews that were shown before sandbox:%s', async (model, word, previews) => {
    const broken = await generate(model, `sandbox:${word}`, streamed)
    expect(broken.events.map(isError)).toEqual([...Array<boolean>(previews).fill(false), true])
    expect(broken).toMatchObject({ basis: 'estimated', usage: { imageOutput: previews * preview } })
    const whole = await generate(model, 'sandbox:pace=0', streamed)
    expect(whole).toMatchObject({ basis: 'vendor', usage: { imageOutput: square + 3 * preview } })
    expect(broken.cost).toBeGreaterThan(0n)
    expect(broken.cost).toBeLessThan(whole.cost)
  })

  test('an edit is charged for the preview that was shown', async () => {
    const broken = await edit('sandbox:cut=1', { stream: 'true', partial_images: '3' })
    expect(broken).toMatchObject({ basis: 'estimated', usage: { imageOutput: preview } })
    expect(broken.usage?.imageInput).toBeGreaterThan(0)
    const whole = await edit('', { stream: 'true', partial_images: '3' })
    expect(broken.cost).toBeLessThan(whole.cost)
  })

  test('a complete image of several is charged in full', async () => {
    const broken = await generate('gpt-image-1', 'sandbox:cut=3', { stream: true, partial_images: 1, n: 2 })
    expect(broken.events.map(isError)).toEqual([false, false, false, true])
    expect(broken).toMatchObject({ basis: 'estimated', usage: { imageOutput: square + 2 * preview } })
  })

  test('a client that leaves after a preview is charged for that preview', async () => {
    const { id, key } = await gateway.account()
    const abort = new AbortController()
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-image-1', prompt: 'A hat sandbox:pace=60000', ...streamed }),
      signal: abort.signal,
    })
    await response.body?.getReader().read()
    abort.abort()
    await until(async () => (await lastRequestOf(gateway, id)) !== undefined)
    expect(await lastRequestOf(gateway, id)).toMatchObject({
      status: 499,
      basis: 'estimated',
      usage: { imageOutput: preview },
    })
  })
})

describe('a whole image without usage', () => {
  test.each([
    ['gpt-image-1', {}, square],
    ['gpt-image-1', { size: 'auto', quality: 'auto' }, square],
    ['gpt-image-1', { size: '1536x1024', quality: 'low' }, 408],
    ['gpt-image-1', { stream: true }, square],
    ['gpt-image-1', streamed, square + 3 * preview],
    ['gpt-image-2', { n: 2 }, 2 * square],
    ['gpt-image-2', { size: '512x512' }, 264],
    ['gemini-2.5-flash-image', {}, 1_290],
    ['gemini-3-pro-image', {}, 1_120],
    ['gemini-3-pro-image', { size: '2048x2048' }, 1_120],
    ['gemini-3-pro-image', { size: '4K' }, 2_000],
    ['gemini-3-pro-image', { stream: true }, 1_120],
  ])('%s with %j is charged by its size and quality', async (model, more, imageOutput) => {
    const untold = await generate(model, 'sandbox:nousage', more)
    expect(untold).toMatchObject({ basis: 'estimated', usage: { imageOutput } })
    const told = await generate(model, 'sandbox:pace=0', more)
    expect(told).toMatchObject({ basis: 'vendor', usage: { imageOutput } })
  })

  test('an edit is charged by its size and quality', async () => {
    expect(await edit('sandbox:nousage')).toMatchObject({ basis: 'estimated', usage: { imageOutput: square } })
  })
})

test('the customer pays for the images that came when the vendor counts more', async () => {
  const links = ['a', 'b', 'c'].map((name) => ({ image: `https://oss.example/${name}.png` }))
  const body = {
    output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: links } }] },
    usage: { image_count: 4, width: 1328, height: 1328 },
  }
  const vendor = await startVendor((socket) => void socket.write(answer(200, JSON.stringify(body))))
  const short = await startTestGateway({
    yaml: `
sandbox: false
channels:
  - { id: ali, vendor: dashscope, baseUrl: "${new URL(vendor.baseUrl).origin}", keys: ["key"] }
`,
  })
  const response = await short.post(path, { model: 'qwen-image-2.0', prompt: 'A hat', n: 4 })
  expect(response.status).toBe(200)
  expect(((await response.json()) as { data: unknown[] }).data).toHaveLength(3)
  const record = { cost: 105_000_000n, basis: 'vendor', usage: { images: { count: 3 } } }
  expect(await recordOf(short, response)).toMatchObject(record)
  expect(await attemptsOf(short, response)).toMatchObject([{ vendor_cost: 140_000_000n, delivered: true }])
  expect(await booked(short, 'payable:dashscope')).toBe(nano(140_000_000n))
  await short.assertBooks()
  await short.close()
  await vendor.stop()
})

// An ordinary image, and one of 4096 by 4096 pixels under a cap on tokens that it just keeps to.
test.each([
  [2_000_000, 1_290, 8_192],
  [24_000_000, 2_000, 2_000],
])('a chat model with a price for images streams one of %p bytes and %p tokens of %p', async (bytes, tokens, cap) => {
  const image = 'A'.repeat(bytes)
  const drawn = { inlineData: { mimeType: 'image/png', data: image } }
  const usageMetadata = {
    promptTokenCount: 5,
    candidatesTokenCount: tokens,
    totalTokenCount: 5 + tokens,
    candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: tokens }],
  }
  const told = { candidates: [{ index: 0, content: { parts: [drawn] }, finishReason: 'STOP' }], usageMetadata }
  const vendor = await startVendor((socket) => void socket.write(stream(event(told))))
  const drawing = await startTestGateway({
    yaml: `
sandbox: false
channels:
  - { id: google, vendor: google, baseUrl: "${vendor.origin}", keys: ["key"] }
models:
  - { id: d, from: gemini-2.5-flash-image, capability: chat, outputTokensMax: 8192, channels: [{ channel: google }] }
`,
  })
  const response = await drawing.post(
    '/v1/chat/completions',
    says('Draw a hat.', { model: 'd', stream: true, max_tokens: cap }),
  )
  expect(response.status).toBe(200)
  expect((await response.text()).includes(image)).toBe(true)
  const usage = { input: 5, imageOutput: tokens }
  expect(await recordOf(drawing, response)).toMatchObject({
    basis: 'vendor',
    cost: 1_500n + BigInt(tokens) * 30_000n,
    usage,
  })
  await drawing.assertBooks()
  await drawing.close()
  await vendor.stop()
})
