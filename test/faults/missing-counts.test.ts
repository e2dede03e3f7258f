import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { booked, recordOf } from '../support/records.ts'
import { payloadsOf, says } from '../support/streams.ts'
import {
  answer,
  completion,
  delta,
  done,
  event,
  finish,
  opening,
  startVendor,
  stream,
  usageEvent,
  wholeResponse,
  type RawVendor,
} from '../support/vendor.ts'

// Servers that leave a count out, or write it as text: what they left out was used all the same.

let vendor: RawVendor
let gateway: TestGateway
let bytes: string | Buffer

beforeAll(async () => {
  vendor = await startVendor((socket) => void socket.write(bytes))
  const { origin } = new URL(vendor.baseUrl)
  const prices = 'prices: { inputPerMillion: "1", outputPerMillion: "10" }'
  gateway = await startTestGateway({
    mode: 'leased',
    yaml: `
sandbox: false
channels:
  - { id: common, vendor: compatible, baseUrl: "${vendor.baseUrl}", keys: [vendor-key] }
  - { id: openai, vendor: openai, baseUrl: "${vendor.baseUrl}", keys: [vendor-key] }
  - { id: anthropic, vendor: anthropic, baseUrl: "${origin}", keys: [vendor-key] }
  - { id: google, vendor: google, baseUrl: "${origin}", keys: [vendor-key] }
models:
  - { id: m, capability: chat, channels: [{ channel: common }], outputTokensMax: 1000, ${prices} }
  - { id: long, capability: chat, channels: [{ channel: common }], outputTokensMax: 100000, ${prices} }
  - { id: r, capability: chat, channels: [{ channel: openai }], outputTokensMax: 1000, reasoning: true, ${prices} }
  - { id: a, capability: chat, channels: [{ channel: anthropic }], outputTokensMax: 1000, ${prices} }
  - { id: g, capability: chat, channels: [{ channel: google }], outputTokensMax: 1000, ${prices} }
`,
  })
})
afterEach(() => gateway.assertBooks())
afterAll(async () => {
  await gateway.close()
  await vendor.stop()
})

type Whole = { usage: { input_tokens: number; output_tokens: number } }

/** Asks in each protocol, and expects the counts that came, and more than nothing for those that did not. */
async function isEstimated(model: string, paths: readonly string[], counted: object): Promise<void> {
  for (const path of paths) {
    const response = await gateway.post(path, says('Hello there!', { model, max_tokens: 100 }))
    expect(response.status).toBe(200)
    const { basis, usage } = await recordOf(gateway, response)
    expect({ path, basis }).toEqual({ path, basis: 'estimated' })
    expect(usage).toMatchObject(counted)
    expect(Math.min(usage?.input ?? 0, usage?.output ?? 0)).toBeGreaterThan(0)
  }
}

const text = 'one two three four'
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text }],
  stop_reason: 'end_turn',
  stop_sequence: null,
}

describe('an answer in which the vendor left a count out', () => {
  test.each([
    ['the output', { prompt_tokens: 50 }, { input: 50 }],
    ['the input', { completion_tokens: 7 }, { output: 7 }],
    ['the output, which is text', { prompt_tokens: 50, completion_tokens: '7' }, { input: 50 }],
  ])('is charged by our estimate of it, and the record says so: %s', async (_what, usage, counted) => {
    bytes = answer(200, completion(text, { usage }))
    await isEstimated('m', ['/v1/chat/completions', '/v1/messages'], counted)
  })

  test.each([
    ['the output', { input_tokens: 50 }, { input: 50 }],
    ['the input', { output_tokens: 7 }, { output: 7 }],
    ['both, which are text', { input_tokens: '50', output_tokens: '7' }, {}],
  ])('of the messages protocol is charged by our estimate of it: %s', async (_what, usage, counted) => {
    bytes = answer(200, JSON.stringify({ ...message, usage }))
    await isEstimated('a', ['/v1/messages', '/v1/chat/completions'], counted)
  })

  test('of the responses protocol is charged by our estimate of it', async () => {
    bytes = answer(200, JSON.stringify({ ...wholeResponse, usage: { input_tokens: 50 } }))
    const response = await gateway.post('/v1/responses', { model: 'r', input: 'Hello there!' })
    expect(response.status).toBe(200)
    const { basis, usage } = await recordOf(gateway, response)
    expect({ basis, usage }).toMatchObject({ basis: 'estimated', usage: { input: 50 } })
    expect(usage?.output).toBeGreaterThan(0)
  })

  test('shows a client of another protocol what it is charged for', async () => {
    bytes = answer(200, completion(text, { usage: { prompt_tokens: 50 } }))
    const response = await gateway.post('/v1/messages', says('Hello there!', { model: 'm', max_tokens: 100 }))
    const { usage: shown } = (await response.json()) as Whole
    const { usage } = await recordOf(gateway, response)
    expect(shown).toMatchObject({ input_tokens: 50, output_tokens: usage?.output ?? 0 })
    expect(shown.output_tokens).toBeGreaterThan(0)
  })
})

describe('a stream in which the vendor left a count out', () => {
  const partly = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [] }

  test('is charged by our estimate of it, and shows that to a client of another protocol', async () => {
    const counted = event({ ...partly, usage: { prompt_tokens: 50 } })
    bytes = stream(opening + delta(text) + finish + counted + done)
    const passed = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream: true }))
    await passed.text()
    const { basis, usage } = await recordOf(gateway, passed)
    expect({ basis, usage }).toMatchObject({ basis: 'estimated', usage: { input: 50 } })
    expect(usage?.output).toBeGreaterThan(0)

    const asked = says('Hello!', { model: 'm', stream: true, max_tokens: 100 })
    const translated = await gateway.post('/v1/messages', asked)
    const end = (await payloadsOf(translated)).find((payload) => payload.includes('"message_delta"'))
    const { usage: shown } = JSON.parse(end ?? '') as Whole
    const { usage: charged } = await recordOf(gateway, translated)
    expect(shown).toMatchObject({ input_tokens: 50, output_tokens: charged?.output ?? 0 })
    expect(shown.output_tokens).toBeGreaterThan(0)
  })

  test('keeps the counts that it had before a usage without any', async () => {
    const empty = event({ ...partly, usage: {} })
    bytes = stream(opening + delta(text) + finish + usageEvent(50, 7) + empty + done)
    const asked = says('Hello!', { model: 'm', stream: true, stream_options: { include_usage: true } })
    const response = await gateway.post('/v1/chat/completions', asked)
    const payloads = await payloadsOf(response)
    expect(JSON.parse(payloads.at(-2) ?? '')).toMatchObject({ usage: { prompt_tokens: 50, completion_tokens: 7 } })
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ basis: 'vendor', cost: 120_000n, usage: { input: 50, output: 7 } })
  })

  test('keeps the counts that it had before a usage of zeros', async () => {
    bytes = stream(opening + delta(text) + finish + usageEvent(50, 7) + usageEvent(0, 0) + done)
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const response = await gateway.post(path, says('Hello!', { model: 'm', stream: true, max_tokens: 100 }))
      await response.text()
      const record = await recordOf(gateway, response)
      expect(record).toMatchObject({ basis: 'vendor', cost: 120_000n, usage: { input: 50, output: 7 } })
    }
  })

  test('keeps the input that message_start counted if the end counts zeros', async () => {
    const events = [
      { type: 'message_start', message: { ...message, content: [], usage: { input_tokens: 50, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 0, output_tokens: 7 } },
      { type: 'message_stop' },
    ]
    bytes = stream(events.map(event).join(''))
    for (const path of ['/v1/messages', '/v1/chat/completions']) {
      const response = await gateway.post(path, says('Hello!', { model: 'a', stream: true, max_tokens: 100 }))
      await response.text()
      const record = await recordOf(gateway, response)
      expect(record).toMatchObject({ basis: 'vendor', cost: 120_000n, usage: { input: 50, output: 7 } })
    }
  })
})

test('reasoning that only the total counts is charged as output', async () => {
  bytes = answer(200, completion(text, { usage: { prompt_tokens: 50, completion_tokens: 7, total_tokens: 80 } }))
  const before = await booked(gateway, 'revenue:m')
  const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm' }))
  const record = await recordOf(gateway, response)
  expect(record).toMatchObject({ basis: 'vendor', cost: 350_000n, usage: { input: 50, output: 30, reasoning: 23 } })
  expect(await booked(gateway, 'revenue:m')).toBe(nano(before + 350_000n))
})

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

test('an image whose tokens the vendor did not count is charged by our estimate of them', async () => {
  bytes = answer(200, JSON.stringify({ created: 1, data: [{ b64_json: pixel }], usage: { input_tokens: 5 } }))
  const response = await gateway.post('/v1/images/generations', { model: 'gpt-image-2', prompt: 'A fox' })
  expect(response.status).toBe(200)
  const { basis, usage } = await recordOf(gateway, response)
  expect(basis).toBe('estimated')
  expect(usage?.imageOutput).toBeGreaterThan(0)
})

/** The last counts in an answer or a stream. */
function shownIn(written: string): unknown {
  const [, counted] = /.*"usage":(\{.*?"input_tokens":.*?"output_tokens":\d+)/s.exec(written) ?? []
  return counted === undefined ? undefined : JSON.parse(`${counted}}`)
}

test('a long prompt and a long answer are shown with the estimates that are charged', async () => {
  // Estimates of long texts count other pieces each time, and these lines differ in what they count.
  const lines = Array.from({ length: 9_000 }, (_, line) => (line % 3 === 0 ? `word${line} ` : 'a plain sentence. '))
  const long = lines.join('')
  const ask = { model: 'long', max_tokens: 100_000 }
  const calls = [
    ['/v1/messages', says(long, ask)],
    ['/v1/responses', { model: 'long', input: long }],
  ] as const
  for (const [path, body] of calls) {
    for (const [isStream, sent] of [
      [false, answer(200, completion(long, { usage: undefined }))],
      [true, stream(opening + delta(text) + finish + done)],
    ] as const) {
      bytes = sent
      const response = await gateway.post(path, { ...body, stream: isStream })
      const shown = shownIn(await response.text())
      const { basis, usage } = await recordOf(gateway, response)
      const charged = { input_tokens: usage?.input ?? 0, output_tokens: usage?.output ?? 0 }
      expect({ path, isStream, basis, shown }).toMatchObject({ path, isStream, basis: 'estimated', shown: charged })
    }
  }
})

test('a text that the vendor embeds but does not count is charged up to the length that the model reads', async () => {
  const data = [{ object: 'embedding', index: 0, embedding: Array.from({ length: 1_536 }, () => 0.5) }]
  bytes = answer(200, JSON.stringify({ object: 'list', model: 'text-embedding-3-small', data }))
  const response = await gateway.post('/v1/embeddings', {
    model: 'text-embedding-3-small',
    input: 'word '.repeat(9_000),
  })
  expect(await response.json()).toMatchObject({ usage: { prompt_tokens: 8_191 } })
  const cost = nano(163_820n)
  expect(await recordOf(gateway, response)).toMatchObject({ basis: 'estimated', cost, usage: { input: 8_191 } })
  expect(await booked(gateway, 'revenue:text-embedding-3-small')).toBe(cost)
})

const said = (parts: readonly object[], finishReason?: string) => [{ index: 0, content: { parts }, finishReason }]
const google = (parts: readonly object[], usageMetadata: object, finishReason = 'STOP') =>
  answer(200, JSON.stringify({ candidates: said(parts, finishReason), usageMetadata }))

describe('an answer of Google in which a count is left out', () => {
  const counted = { promptTokenCount: 50, totalTokenCount: 50 }

  test.each([
    ['the output', counted, { input: 50 }],
    ['the input', { candidatesTokenCount: 7, totalTokenCount: 7 }, { output: 7 }],
  ])('is charged by our estimate of it: %s', async (_what, usage, known) => {
    bytes = google([{ text }], usage)
    await isEstimated('g', ['/v1/chat/completions', '/v1/messages'], known)
  })

  test('is charged by the total if that includes it', async () => {
    bytes = google([{ text }], { promptTokenCount: 50, thoughtsTokenCount: 3, totalTokenCount: 60 })
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'g' }))
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ basis: 'vendor', cost: 150_000n, usage: { input: 50, output: 10, reasoning: 3 } })
  })

  test('is charged nothing for it if no words were said', async () => {
    const thought = { text: 'Let me see.', thought: true }
    bytes = google([thought], { promptTokenCount: 50, thoughtsTokenCount: 3, totalTokenCount: 53 }, 'MAX_TOKENS')
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'g' }))
    expect(await recordOf(gateway, response)).toMatchObject({ basis: 'vendor', usage: { input: 50, output: 3 } })
  })

  test('is charged nothing if the total is 0', async () => {
    bytes = google([{ text }], { promptTokenCount: 0, totalTokenCount: 0 })
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'g' }))
    expect(await recordOf(gateway, response)).toMatchObject({ basis: 'vendor', cost: 0n, usage: { output: 0 } })
  })

  test('is charged by our estimate of it at the end of a stream', async () => {
    const events = [
      { candidates: said([{ text }]), usageMetadata: { ...counted, candidatesTokenCount: 4, totalTokenCount: 54 } },
      { candidates: said([], 'RECITATION'), usageMetadata: counted },
    ]
    bytes = stream(events.map(event).join(''))
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'g', stream: true }))
    await response.text()
    const { basis, usage, cost } = await recordOf(gateway, response)
    expect({ basis, usage }).toMatchObject({ basis: 'estimated', usage: { input: 50 } })
    expect(usage?.output).toBeGreaterThan(0)
    expect(cost).toBe(nano(50_000n + 10_000n * BigInt(usage?.output ?? 0)))
  })

  // Audio and images have a higher price than words.
  test('is charged for what was asked for if its kind is left out', async () => {
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 25, totalTokenCount: 30 }
    const audio = { inlineData: { mimeType: 'audio/L16;codec=pcm;rate=24000', data: 'AQIDBA==' } }
    bytes = stream(event({ candidates: said([audio], 'STOP'), usageMetadata }))
    const speech = { model: 'gemini-2.5-flash-preview-tts', input: 'Hello', response_format: 'wav' }
    const spoken = await gateway.post('/v1/audio/speech', speech)
    await spoken.bytes()
    expect(await recordOf(gateway, spoken)).toMatchObject({
      basis: 'vendor',
      cost: 251_500n,
      usage: { input: 5, audioOutput: 25 },
    })

    bytes = google([{ inlineData: { mimeType: 'image/png', data: pixel } }], {
      ...usageMetadata,
      thoughtsTokenCount: 2,
    })
    const drawn = await gateway.post('/v1/images/generations', { model: 'gemini-2.5-flash-image', prompt: 'A fox' })
    expect(await recordOf(gateway, drawn)).toMatchObject({
      basis: 'vendor',
      cost: 756_500n,
      usage: { input: 5, imageOutput: 25, output: 2 },
    })
  })

  test('is estimated if it is audio or an image', async () => {
    const audio = { inlineData: { mimeType: 'audio/L16;codec=pcm;rate=24000', data: 'A'.repeat(64_000) } }
    bytes = stream(event({ candidates: said([audio], 'STOP'), usageMetadata: counted }))
    const speech = { model: 'gemini-2.5-flash-preview-tts', input: 'Hello', response_format: 'wav' }
    const spoken = await gateway.post('/v1/audio/speech', speech)
    await spoken.bytes()
    // One second of audio, at 25 tokens a second.
    expect(await recordOf(gateway, spoken)).toMatchObject({ basis: 'estimated', usage: { audioOutput: 25 } })

    bytes = google([{ inlineData: { mimeType: 'image/png', data: pixel } }], counted)
    const drawn = await gateway.post('/v1/images/generations', { model: 'gemini-2.5-flash-image', prompt: 'A fox' })
    expect(await recordOf(gateway, drawn)).toMatchObject({ basis: 'estimated', usage: { imageOutput: 1_290 } })
  })
})
