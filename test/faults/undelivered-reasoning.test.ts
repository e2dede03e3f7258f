import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { nano, zeroNano } from '../../src/base/money.ts'
import { compatible } from '../../src/vendors/compatible/compatible.ts'
import { vendors } from '../../src/vendors/index.ts'
import type { Vendor } from '../../src/vendors/vendor.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { connect } from '../support/mcp.ts'
import { jsonPost, openSocket } from '../support/raw-socket.ts'
import { attemptsOf, booked, lastRequestOf, recordOf } from '../support/records.ts'
import {
  chunk,
  delta,
  done,
  event,
  finish,
  lastChunk,
  opening,
  startVendor,
  streamHead,
  usageEvent,
  type RawVendor,
  type Reply,
} from '../support/vendor.ts'

/** Streams that end while the model thinks or searches, for clients that see that and for those that do not. */

let gateway: TestGateway
let vendor: RawVendor
let reply: Reply
const known = vendors as Map<string, Vendor>

beforeAll(async () => {
  known.set('drainer', compatible({ id: 'drainer', baseUrl: '', hangup: 'drain' }))
  vendor = await startVendor((socket, request) => reply(socket, request))
  const prices = '{ inputPerMillion: "1", outputPerMillion: "10", webSearchPerThousand: "10" }'
  const models = ['compatible', 'anthropic', 'drainer'].map(
    (id) =>
      `  - { id: ${id}, capability: chat, channels: [{ channel: ${id} }], outputTokensMax: 9000, prices: ${prices} }`,
  )
  const yaml = `
sandbox: false
channels:
  - { id: compatible, vendor: compatible, baseUrl: "${vendor.baseUrl}", keys: [k] }
  - { id: anthropic, vendor: anthropic, baseUrl: "${vendor.baseUrl.replace(/\/v1$/, '')}", keys: [k] }
  - { id: drainer, vendor: drainer, baseUrl: "${vendor.baseUrl}", keys: [k] }
models:
${models.join('\n')}
`
  gateway = await startTestGateway({ yaml, mode: 'leased' })
})
afterEach(() => gateway.assertBooks())
afterAll(async () => {
  known.delete('drainer')
  await gateway.close()
  await vendor.stop()
})

// More than enough for a client that sees none of them to be sent a keep-alive.
const thoughts = 60

const thought = event({ id: 'c1', choices: [{ index: 0, delta: { reasoning_content: 'word' }, finish_reason: null }] })
const thinks = opening + thought.repeat(thoughts)

const named = (type: string, fields: object) => `event: ${type}\n${event({ type, ...fields })}`
const blockDelta = (fields: object) => named('content_block_delta', { index: 0, delta: fields })
const anthropicStarts = named('message_start', {
  message: { id: 'msg_1', content: [], usage: { input_tokens: 7, output_tokens: 1 } },
})
const anthropicThinks =
  anthropicStarts +
  named('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }) +
  blockDelta({ type: 'thinking_delta', thinking: 'word' }).repeat(thoughts)
const anthropicSigns =
  blockDelta({ type: 'signature_delta', signature: 'c2lnbmVk' }) + named('content_block_stop', { index: 0 })

const messages = [{ role: 'user', content: 'Hello!' }]
const thinking = { type: 'enabled', budget_tokens: 1_024 }
const asMessages = (more: object = {}) => ({ messages, max_tokens: 2_000, stream: true, ...more })
const asResponse = (more: object = {}) => ({ input: messages, max_output_tokens: 2_000, stream: true, ...more })
const sealed = { include: ['reasoning.encrypted_content'] }

const unseen: readonly [string, string, object][] = [
  ['compatible', '/v1/messages', asMessages()],
  ['compatible', '/v1/messages', asMessages({ thinking: { ...thinking, display: 'omitted' } })],
  ['compatible', '/v1/responses', asResponse()],
  ['compatible', '/v1/responses', asResponse(sealed)],
  ['anthropic', '/v1/responses', asResponse(sealed)],
]

const writes = (model: string) => (model === 'anthropic' ? anthropicThinks : thinks)

test.each(unseen)('%s on %s: hidden reasoning that is cut costs the customer nothing', async (model, path, body) => {
  const before = await gateway.balance()
  const lostBefore = await booked(gateway, 'platform:loss')
  reply = (socket) => void socket.end(Buffer.concat([Buffer.from(streamHead), chunk(writes(model))]))
  const response = await gateway.post(path, { model, ...body })
  const text = await response.text()
  expect(text).toContain('"error"')
  expect(text).not.toContain('word')
  expect(text).not.toContain('encrypted_content')
  expect(await recordOf(gateway, response)).toMatchObject({ status: 502, basis: 'policy_zero', cost: zeroNano })
  expect(await gateway.balance()).toEqual(before)
  // The vendor has done the reasoning all the same, which is our loss.
  const [attempt] = await attemptsOf(gateway, response)
  const cost = attempt?.vendor_cost ?? zeroNano
  expect(attempt).toMatchObject({ status: 200, delivered: false })
  expect(cost).toBeGreaterThan(nano(BigInt(thoughts) * 10_000n))
  expect(lostBefore - (await booked(gateway, 'platform:loss'))).toBe(cost)
})

test.each([
  ['compatible', '/v1/chat/completions', { messages, stream: true }, thinks],
  ['compatible', '/v1/messages', asMessages({ thinking }), thinks],
  ['compatible', '/v1/responses', asResponse({ reasoning: { summary: 'auto' } }), thinks],
  ['compatible', '/v1/messages', asMessages(), thinks + delta('word')],
  ['compatible', '/v1/responses', asResponse(), thinks + delta('word')],
  // All that the client is shown of the reasoning is its signature.
  ['anthropic', '/v1/responses', asResponse(sealed), anthropicThinks + anthropicSigns],
])('%s on %s: reasoning is paid for once anything was shown before a cut', async (model, path, body, events) => {
  const before = await gateway.balance()
  reply = (socket) => void socket.end(Buffer.concat([Buffer.from(streamHead), chunk(events)]))
  const response = await gateway.post(path, { model, ...body })
  expect(await response.text()).toContain('"error"')
  const { usage, cost, ...record } = await recordOf(gateway, response)
  expect(record).toMatchObject({ status: 502, basis: 'estimated' })
  const output = events.includes('"content":"word"') ? thoughts + 1 : thoughts
  expect(usage?.output).toBe(output)
  expect(cost).toBe(nano(BigInt(usage?.input ?? 0) * 1_000n + BigInt(output) * 10_000n))
  expect(before.posted - (await gateway.balance()).posted).toBe(cost)
})

/** What a stream has one of for every sign of life, and how many it has before the first. */
const signsOfLife: Readonly<Record<string, [string, number]>> = {
  '/v1/messages': ['event: ping', 1],
  '/v1/responses': [': waiting', 0],
  '/v1/chat/completions': ['"finish_reason":null', 0],
}

/** Asks, and leaves after this many keep-alives: by then most of the reasoning has been read. */
async function leave(model: string, path: string, body: object, times = 1) {
  const { id, key } = await gateway.account()
  const client = await openSocket(gateway.url)
  let text = ''
  client.on('data', (bytes: Buffer) => (text += bytes.toString()))
  client.on('error', () => {})
  client.write(jsonPost({ url: gateway.url, key }, { model, ...body }, path))
  const [sign, before] = signsOfLife[path] ?? ['', 0]
  await until(() => text.split(sign).length > before + times)
  expect(text).not.toContain('word')
  client.destroy()
  return id
}

test.each(unseen)('%s on %s: hidden reasoning is charged when the client leaves', async (model, path, body) => {
  reply = (socket) => {
    socket.write(Buffer.concat([Buffer.from(streamHead), chunk(writes(model))]))
    return new Promise((resolve) => socket.on('close', resolve))
  }
  const account = await leave(model, path, body)
  await until(async () => (await lastRequestOf(gateway, account)) !== undefined)
  const record = await lastRequestOf(gateway, account)
  expect(record).toMatchObject({ status: 499, basis: 'estimated' })
  expect(record?.cost).toBeGreaterThan(nano(50n * 10_000n))
})

test.each([1, 3])('hidden searches are charged when the client leaves, in each of %d choices', async (n) => {
  const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
  const searches = anthropicStarts + named('content_block_start', { index: 0, content_block: search })
  reply = (socket) => {
    socket.write(Buffer.concat([Buffer.from(streamHead), chunk(searches)]))
    return new Promise((resolve) => socket.on('close', resolve))
  }
  const body = { messages, stream: true, n, web_search_options: {} }
  const account = await leave('anthropic', '/v1/chat/completions', body, n)
  await until(async () => (await lastRequestOf(gateway, account)) !== undefined)
  const record = await lastRequestOf(gateway, account)
  expect(record).toMatchObject({ status: 499, basis: 'estimated', usage: { input: 7 * n, webSearch: n, output: n } })
  // At a cent a search.
  expect(record?.cost).toBe(nano(BigInt(n) * (10_000_000n + 7_000n + 10_000n)))
})

test.each([
  ['is charged if it comes', finish + usageEvent(7, 520) + done, { basis: 'vendor', cost: 5_207_000n }],
  ['is estimated if it does not come', '', { basis: 'estimated', usage: { output: thoughts } }],
])('a vendor that charges on is read on after the client left, and its count %s', async (_what, rest, charged) => {
  const gone = Promise.withResolvers<void>()
  reply = async (socket) => {
    socket.write(Buffer.concat([Buffer.from(streamHead), chunk(thinks)]))
    await gone.promise
    // Slowly, so that the hang-up is noticed long before the end.
    for (let index = 0; index < 50; index++) {
      socket.write(chunk(': alive\n\n'))
      await new Promise((resolve) => setTimeout(resolve, 4))
    }
    socket.end(rest === '' ? '' : Buffer.concat([chunk(rest), Buffer.from(lastChunk)]))
  }
  const account = await leave('drainer', '/v1/messages', asMessages())
  gone.resolve()
  await until(async () => (await lastRequestOf(gateway, account)) !== undefined)
  expect(await lastRequestOf(gateway, account)).toMatchObject({ status: 499, ...charged })
})

const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city": "Os' } }
const calls = event({ id: 'c1', choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] })

test.each([
  ['reasoning', thinks, { reasoning: 'word'.repeat(thoughts) }],
  ['a part of a call', opening + calls, { tool_calls: [{ function: { name: 'get_weather' } }] }],
])('a tool of /mcp that streams shows %s that was cut, and is charged for it', async (_what, sent, choice) => {
  reply = (socket) => void socket.end(Buffer.concat([Buffer.from(streamHead), chunk(sent)]))
  const client = await connect(gateway, 'modern')
  const result = await client.call('chat', { model: 'compatible', prompt: 'Hello!' }, { onprogress() {} })
  await client.close()
  expect(result.isError).toBe(true)
  const [arrived, error] = result.content.map(({ text = '' }) => JSON.parse(text) as unknown)
  expect(arrived).toMatchObject({ model: 'compatible', choices: [{ text: '', finish_reason: null, ...choice }] })
  expect(error).toMatchObject({ error: { code: 'upstream_failed' } })
  const record = await recordOf(gateway, String(result._meta?.['turnpike/request_id']))
  expect(record).toMatchObject({ status: 502, basis: 'estimated' })
  expect(record.cost).toBeGreaterThan(zeroNano)
})
