import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { until } from '../support/gateway.ts'
import { isTold, startOwnGateway, type OwnGateway } from '../support/own-gateway.ts'
import { says } from '../support/streams.ts'
import { answer, chunk, completion, delta, flood, opening, startVendor, streamHead } from '../support/vendor.ts'
import type { RawVendor, Reply } from '../support/vendor.ts'

// U-07: a vendor that offers a gigabyte where a line, an event or an answer should end. The gateway has a process of
// its own: what it takes until it hangs up, and by how much its memory grows meanwhile, is seen from outside.

const mebibyte = 1024 * 1024
const offeredBytes = 1024 * mebibyte
/** What is on its way when the gateway hangs up: what the buffers of two sockets hold at the most, and a few writes. */
const underWayBytes = bufferMax('tcp_rmem') + bufferMax('tcp_wmem') + 8 * mebibyte
/** Above the memory before the first of them: an event of a megabyte, and what waits for the garbage collector. */
const eventGrowthMax = 150 * mebibyte
/** 64 MiB in pieces, or in a buffer that doubles; eight answers, one after another, took 400 MB at the most. */
const mediaGrowthMax = 600 * mebibyte
const slowMs = 600_000

/** The least, the usual and the largest size of a buffer (tcp(7)); some systems let them grow to 32 MiB. */
function bufferMax(name: 'tcp_rmem' | 'tcp_wmem'): number {
  return isTold ? Number(readFileSync(`/proc/sys/net/ipv4/${name}`, 'utf8').trim().split(/\s+/)[2]) : 0
}

let vendor: RawVendor
let gateway: OwnGateway
let reply: Reply
let residentBytes: number

beforeAll(async () => {
  if (!isTold) return
  vendor = await startVendor((socket, request) => reply(socket, request))
  const { origin } = new URL(vendor.baseUrl)
  gateway = await startOwnGateway(
    [
      'sandbox: false',
      'channels:',
      `  - { id: openai, vendor: openai, baseUrl: "${origin}/v1", keys: ["one"] }`,
      `  - { id: anthropic, vendor: anthropic, baseUrl: "${origin}", keys: ["two"] }`,
      `  - { id: google, vendor: google, baseUrl: "${origin}", keys: ["three"] }`,
      'limits: { attemptsMax: 1 }',
      '',
    ].join('\n'),
  )
  // What is loaded on first use.
  reply = (socket) => void socket.write(answer(200, completion('Hi')))
  for (const ask of Object.values(asks)) await (await gateway.post(ask.path, ask.body)).text()
  residentBytes = gateway.residentBytes()
}, slowMs)
afterAll(async () => {
  await gateway?.close()
  await vendor?.stop()
})

const streamed = { stream: true, max_tokens: 100 }
const chat = '/v1/chat/completions'
const messages = '/v1/messages'

const asks = {
  'chat, passed through': { path: chat, body: says('Hi', streamed) },
  'chat, translated': { path: chat, body: says('Hi', { ...streamed, model: 'claude-sonnet-4-5' }) },
  'chat, translated from Google': { path: chat, body: says('Hi', { ...streamed, model: 'gemini-2.5-flash' }) },
  'messages, passed through': { path: messages, body: says('Hi', { ...streamed, model: 'claude-sonnet-4-5' }) },
  'messages, translated': { path: messages, body: says('Hi', streamed) },
  'responses, translated': {
    path: '/v1/responses',
    body: { model: 'gpt-4o-mini', input: 'Hi', stream: true, max_output_tokens: 100 },
  },
} as const

/** A vendor that begins an answer and then repeats the same bytes for a gigabyte; `taken` is how many were read. */
function endless(begin: string | Uint8Array, filler: Uint8Array): { readonly taken: () => number | undefined } {
  let taken: number | undefined
  reply = async (socket) => {
    socket.write(begin)
    taken = await flood(socket, filler, offeredBytes)
    socket.destroy()
  }
  return { taken: () => taken }
}

/** The status and the text of the response. */
async function outcomeOf(path: string, body: object): Promise<{ status: number; text: string }> {
  const response = await gateway.post(path, body)
  return { status: response.status, text: await response.text() }
}

/** Asks a vendor that does not end: the response, the bytes that were taken, and the growth of memory. */
async function cutOff(ask: { path: string; body: object }, begin: string | Uint8Array, filler: Uint8Array) {
  const { taken } = endless(begin, filler)
  let outcome = { status: 0, text: '' }
  const peak = await gateway.peakBytesOf(async () => {
    outcome = await outcomeOf(ask.path, ask.body)
    await until(() => taken() !== undefined)
  })
  return { ...outcome, taken: taken() ?? 0, growth: peak - residentBytes }
}

const letters = 'x'.repeat(64 * 1024)
const begun = `${opening}${delta('one')}`
const head = (type: string, more = 'transfer-encoding: chunked') =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${more}\r\n\r\n`
const started = (text: string) => Buffer.concat([Buffer.from(streamHead), chunk(text)])

/** Ways for an event not to end. */
const events: readonly { name: string; begin: Uint8Array; filler: Uint8Array }[] = [
  { name: 'a line', begin: started(`${begun}data: "`), filler: chunk(letters) },
  {
    name: 'a line from the first byte on',
    begin: started('data: {"choices":[{"delta":{"content":"'),
    filler: chunk(letters),
  },
  { name: 'an event of short lines', begin: started(begun), filler: chunk('data: {"a":1}\n'.repeat(5_000)) },
  { name: 'an event of comments', begin: started(begun), filler: chunk(': still here\n'.repeat(5_000)) },
  { name: 'a line without a field', begin: started(begun), filler: chunk(letters) },
  {
    name: 'a single chunk of HTTP',
    begin: Buffer.from(`${streamHead}${offeredBytes.toString(16)}\r\ndata: "`),
    filler: Buffer.from(letters),
  },
]

describe.skipIf(!isTold)('an endless event in a stream', () => {
  const rows = Object.entries(asks).flatMap(([way, ask]) => events.map((shape) => ({ way, ask, ...shape })))

  test.each(rows)(
    '$way: $name without an end is cut off at about a megabyte',
    async ({ ask, begin, filler }) => {
      const { status, text, taken, growth } = await cutOff(ask, begin, filler)
      // A stream that has begun ends with an error event; otherwise the response itself is an error.
      expect(status === 502 || text.includes('error')).toBe(true)
      expect(text).not.toContain('[DONE]')
      expect(text.length).toBeLessThan(mebibyte)
      expect(taken).toBeGreaterThan(mebibyte / 2)
      expect(taken).toBeLessThan(underWayBytes)
      expect(growth).toBeLessThan(eventGrowthMax)
    },
    slowMs,
  )

  test(
    'twenty endless events, one after another, do not add up in memory',
    async () => {
      const [shape] = events
      if (shape === undefined) throw new Error('there is none')
      for (let round = 0; round < 20; round++) {
        const { growth } = await cutOff(asks['chat, passed through'], shape.begin, shape.filler)
        expect(growth).toBeLessThan(eventGrowthMax)
      }
    },
    slowMs,
  )
})

describe.skipIf(!isTold)('a response with an endless part', () => {
  test.each([
    [
      'a refusal',
      Buffer.from(answer(400, '').replace('content-length: 0', 'transfer-encoding: chunked')),
      chunk(letters),
    ],
    [
      'a failure',
      Buffer.from(answer(500, '').replace('content-length: 0', 'transfer-encoding: chunked')),
      chunk(letters),
    ],
    ['a header', Buffer.from('HTTP/1.1 200 OK\r\nx-odd: '), Buffer.from(letters)],
    ['a status line', Buffer.from('HTTP/1.1 200 '), Buffer.from(letters)],
    ['a chunk extension', Buffer.from(`${streamHead}5;odd=`), Buffer.from(letters)],
    ['a chunk size', Buffer.from(streamHead), Buffer.from('0'.repeat(64 * 1024))],
    ['a trailer', Buffer.from(`${streamHead}0\r\nx-odd: `), Buffer.from(letters)],
  ])(
    '%s that never ends is cut off with an error',
    async (_name, begin, filler) => {
      for (const ask of [asks['chat, passed through'], asks['messages, passed through']]) {
        const { status, text, taken, growth } = await cutOff(ask, begin, filler)
        expect(status === 502 || text.includes('error')).toBe(true)
        expect(taken).toBeLessThan(underWayBytes)
        expect(growth).toBeLessThan(eventGrowthMax)
      }
    },
    slowMs,
  )
})

const whole = (ask: { path: string; body: object }) => ({ ...ask, body: { ...ask.body, stream: false } })

describe.skipIf(!isTold)('an endless answer', () => {
  const embedding = { path: '/v1/embeddings', body: { model: 'text-embedding-3-small', input: 'Hi' } }
  const image = { path: '/v1/images/generations', body: { model: 'gpt-image-2', prompt: 'a hat' } }
  const json = head('application/json')

  test.each([
    ['chat', whole(asks['chat, passed through']), '{"choices":["'],
    ['chat, translated', whole(asks['chat, translated']), '{"content":["'],
    ['messages', whole(asks['messages, passed through']), '{"content":["'],
    ['messages, translated', whole(asks['messages, translated']), '{"choices":["'],
    ['embeddings', embedding, '{"data":[{"embedding":"'],
    ['an image', image, '{"data":[{"b64_json":"'],
  ])(
    'an endless answer (%s) is cut off at 64 MiB',
    async (_name, ask, text) => {
      const begin = Buffer.concat([Buffer.from(json), chunk(text)])
      const { status, taken, growth } = await cutOff(ask, begin, chunk('x'.repeat(mebibyte)))
      expect(status).toBe(502)
      expect(taken).toBeGreaterThan(32 * mebibyte)
      expect(taken).toBeLessThan(64 * mebibyte + underWayBytes)
      expect(growth).toBeLessThan(mediaGrowthMax)
    },
    slowMs,
  )

  test.each([
    ['an image', '/v1/images/generations', { model: 'gpt-image-2', prompt: 'a hat', stream: true }, 32],
    // The audio of so few words has a known maximum, which is far less.
    ['speech', '/v1/audio/speech', { model: 'gpt-4o-mini-tts', input: 'Hi', voice: 'alloy', stream_format: 'sse' }, 1],
  ])(
    'an endless event with %s in it is cut off at 64 MiB or before',
    async (_name, path, body, least) => {
      const begin = started('data: {"type":"x","b64_json":"')
      const { text, taken, growth } = await cutOff({ path, body }, begin, chunk('x'.repeat(mebibyte)))
      expect(text).toContain('error')
      expect(taken).toBeGreaterThan(least * mebibyte)
      expect(taken).toBeLessThan(64 * mebibyte + underWayBytes)
      expect(growth).toBeLessThan(mediaGrowthMax)
    },
    slowMs,
  )
})

test.skipIf(!isTold)('the gateway serves as before after all of these, and holds no money', async () => {
  reply = (socket) => void socket.write(answer(200, completion('Hi')))
  expect((await outcomeOf(chat, says('Hi'))).status).toBe(200)
  await until(async () => {
    const response = await fetch(`${gateway.url}/v1/balance`, { headers: { authorization: `Bearer ${gateway.key}` } })
    return ((await response.json()) as { held: string }).held === '0'
  })
})
