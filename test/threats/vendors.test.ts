import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createGzip, gzipSync } from 'node:zlib'
import { nano } from '../../src/base/money.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { openBlackhole } from '../support/blackhole.ts'
import { movableClock } from '../support/movable-clock.ts'
import { attemptsOf, holdsOf, lastRequestOf, recordOf } from '../support/records.ts'
import { contentOf, errorOf, payloadsOf, says } from '../support/streams.ts'
import {
  answer,
  channelsTo,
  chunk,
  completion,
  delta,
  done,
  event,
  finish,
  flood,
  lastChunk,
  opening,
  startVendor,
  stream,
  streamHead,
  usageEvent,
  type RawVendor,
  type Reply,
} from '../support/vendor.ts'

const vendorKey = 'vk-canary-0123456789-abcdef'

/** Whatever a vendor does, the books balance and its key is nowhere to be seen. */
let open: { gateway: TestGateway; stops: (() => unknown)[] } | undefined

async function gatewayTo(
  replies: Reply | readonly Reply[],
  more = '',
): Promise<{ gateway: TestGateway; vendors: RawVendor[]; vendor: RawVendor }> {
  const vendors = await Promise.all([replies].flat().map((reply) => startVendor(reply)))
  const named = Object.fromEntries(vendors.map(({ baseUrl }, index) => [`v${index}`, { baseUrl, key: vendorKey }]))
  const gateway = await startTestGateway({ yaml: channelsTo(named, more) })
  open = { gateway, stops: vendors.map((vendor) => () => vendor.stop()) }
  const [vendor] = vendors
  if (vendor === undefined) throw new Error('no vendor')
  return { gateway, vendors, vendor }
}

afterEach(async () => {
  if (open === undefined) return
  const { gateway, stops } = open
  open = undefined
  try {
    await gateway.assertBooks()
    expect(gateway.logged.join('')).not.toContain(vendorKey)
  } finally {
    await gateway.close()
    for (const stop of stops) await stop()
  }
})

const body = (more: Record<string, unknown> = {}) => says('Hello!', { model: 'm', ...more })
const whole = (gateway: TestGateway, more = {}) => gateway.post('/v1/chat/completions', body(more))
const streamed = (gateway: TestGateway, more = {}) => whole(gateway, { stream: true, ...more })

/** Nothing delivered, nothing charged: the request is on record as failed, at no cost. */
async function costsNothing(gateway: TestGateway, response: Response, status = 502): Promise<void> {
  expect(response.status).toBe(status)
  expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n, basis: 'policy_zero' })
  expect(await gateway.balance()).toMatchObject({ posted: 0n, held: 0n })
}

// U-01
describe('a vendor that cannot be reached', () => {
  let blackhole: Awaited<ReturnType<typeof openBlackhole>>
  beforeAll(async () => {
    blackhole = await openBlackhole()
  })
  afterAll(() => blackhole.close())

  test('because nobody answers there, is given up after the connect timeout', async () => {
    const yaml = channelsTo({ hole: blackhole }, 'timeouts: { connectSeconds: 0.3 }')
    const gateway = await startTestGateway({ yaml })
    open = { gateway, stops: [] }
    // Anybody may be held up once; three seconds, which are what is granted where nothing is said, are three every time.
    let ms = Infinity
    let response = new Response()
    for (let tries = 0; tries < 5 && ms >= 1_500; tries++) {
      const startedAt = performance.now()
      response = await whole(gateway)
      ms = performance.now() - startedAt
    }
    expect(ms).toBeLessThan(1_500)
    await costsNothing(gateway, response, 504)
    expect(await errorOf(response)).toMatchObject({ code: 'upstream_timeout', type: 'upstream_error' })
  })

  test('is left for the next channel', async () => {
    const vendor = await startVendor((socket) => void socket.write(answer(200, completion('Hi'))))
    const yaml = channelsTo({ hole: blackhole, good: vendor }, 'timeouts: { connectSeconds: 3 }')
    const gateway = await startTestGateway({ yaml })
    open = { gateway, stops: [() => vendor.stop()] }
    const response = await whole(gateway)
    expect(response.status).toBe(200)
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ channel, status }) => ({ channel, status }))).toEqual([
      { channel: 'hole', status: 0 },
      { channel: 'good', status: 200 },
    ])
  })

  test('because the port is shut, is a 502 at once', async () => {
    const shut = await startVendor(() => {})
    await shut.stop()
    const gateway = await startTestGateway({ yaml: channelsTo({ shut }) })
    open = { gateway, stops: [] }
    const response = await whole(gateway)
    await costsNothing(gateway, response)
    const text = await response.text()
    expect(text).not.toContain(new URL(shut.baseUrl).port)
  })
})

/** Says nothing until the gateway has gone. */
const silent: Reply = (socket) => new Promise((resolve) => socket.once('close', () => resolve()))

// U-04
describe('a vendor that is slow', () => {
  const timeouts = 'timeouts: { firstByteSeconds: 0.2, wholeAnswerSeconds: 0.3, idleSeconds: 0.25, totalSeconds: 0.8 }'

  // For one that is alive: what holds up its signs for a moment is not its silence, and a busy machine has long ones.
  const idleMs = 3_000
  const patient = (totalSeconds: number) =>
    `timeouts: { firstByteSeconds: 30, idleSeconds: ${idleMs / 1_000}, totalSeconds: ${totalSeconds} }`

  test('to begin a stream is given up before a byte was sent', async () => {
    const { gateway, vendor } = await gatewayTo(silent, timeouts)
    await costsNothing(gateway, await streamed(gateway), 504)
    await until(() => vendor.hangups === 1)
  })

  test('to answer at all is given up', async () => {
    const { gateway, vendor } = await gatewayTo(silent, timeouts)
    await costsNothing(gateway, await whole(gateway), 504)
    await until(() => vendor.hangups === 1)
  })

  test('to go on after its head is given up', async () => {
    const { gateway } = await gatewayTo((socket) => void socket.write(streamHead), timeouts)
    await costsNothing(gateway, await streamed(gateway), 504)
  })

  test('to go on in the middle ends the stream with an error, and what came is charged', async () => {
    const { gateway } = await gatewayTo((socket) => {
      socket.write(streamHead)
      socket.write(chunk(opening + delta('one') + delta('two')))
    }, patient(60))
    const response = await streamed(gateway)
    const events = await payloadsOf(response)
    expect(contentOf(events)).toBe('onetwo')
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_timeout', param: null } })
    expect(await recordOf(gateway, response)).toMatchObject({ status: 502, basis: 'estimated' })
  })

  test('and sends signs of life for ever is cut at the total limit', async () => {
    let timer: ReturnType<typeof setInterval> | undefined
    const { gateway } = await gatewayTo((socket) => {
      socket.write(streamHead)
      socket.write(chunk(opening + delta('one')))
      timer = setInterval(() => socket.write(chunk(': ping\n\n')), 50)
      socket.on('close', () => clearInterval(timer))
    }, patient(5))
    const startedAt = performance.now()
    const response = await streamed(gateway)
    const events = await payloadsOf(response)
    // Not before: what is alive is not given up for its silence.
    expect(performance.now() - startedAt).toBeGreaterThan(4_900)
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_timeout' } })
    expect((await recordOf(gateway, response)).cost).toBeGreaterThan(0n)
  })

  test('but alive is waited for', async () => {
    const { gateway } = await gatewayTo(async (socket) => {
      socket.write(streamHead)
      const parts = [opening, delta('a'), ': ping\n\n', delta('b'), finish, usageEvent(3, 2), done]
      for (const part of parts) {
        // All of them together are longer than a silence may be.
        await new Promise((resolve) => setTimeout(resolve, (1.1 * idleMs) / parts.length))
        socket.write(chunk(part))
      }
      socket.write(lastChunk)
    }, patient(60))
    const response = await streamed(gateway)
    const events = await payloadsOf(response)
    expect(contentOf(events)).toBe('ab')
    expect(events.at(-1)).toBe('[DONE]')
  })
})

type Break = (socket: Parameters<Reply>[0]) => void

/**
 * A stream that breaks as soon as its client has read the last of it: a reset takes away what has not been read yet. Gives
 * what the client reads, from where that is noticed.
 */
function breaking(how: Break): { readonly reply: Reply; readonly read: (response: Response) => Response } {
  const seen = Promise.withResolvers<void>()
  let text = ''
  const look = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, next) {
      text += Buffer.from(bytes).toString()
      if (text.includes('three')) seen.resolve()
      next.enqueue(bytes)
    },
  })
  return {
    async reply(socket) {
      socket.write(streamHead)
      socket.write(chunk(opening + delta('one') + delta('two') + delta('three')))
      await seen.promise
      how(socket)
    },
    read: (response) => new Response(response.body?.pipeThrough(look), response),
  }
}

const onFire = event({ error: { message: 'The engine is on fire.', type: 'server_error', code: null } })

// U-05, U-06
describe('a stream that breaks', () => {
  test.each<[string, Break]>([
    ['by a reset', (socket) => socket.resetAndDestroy()],
    ['by a close in the middle', (socket) => socket.destroy()],
    ['by a half close', (socket) => socket.end()],
    ['by a clean end without a finish', (socket) => socket.end(lastChunk)],
    [
      'in the middle of an event',
      (socket) => socket.end(Buffer.concat([chunk('data: {"cho'), Buffer.from(lastChunk)])),
    ],
    ['by chunks that are none', (socket) => socket.end('zz\r\nnonsense')],
  ])('%s: the client has what came, then an error, and never a false end', async (_name, how) => {
    const { reply, read } = breaking(how)
    const { gateway } = await gatewayTo(reply)
    const response = await streamed(gateway)
    expect(response.status).toBe(200)
    const events = await payloadsOf(read(response))
    expect(contentOf(events)).toBe('onetwothree')
    expect(events).not.toContain('[DONE]')
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_failed', param: null } })
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ status: 502, basis: 'estimated' })
    expect(record.cost).toBeGreaterThan(0n)
  })

  test('before anything came is an ordinary error that costs nothing', async () => {
    const { gateway } = await gatewayTo((socket) => {
      socket.write(streamHead + chunk(opening).toString(), () => setTimeout(() => socket.destroy(), 30))
    })
    const response = await streamed(gateway)
    await response.text()
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n, basis: 'policy_zero' })
  })

  test('with an error event: its words pass, the stream ends there', async () => {
    const { gateway } = await gatewayTo((socket) => {
      socket.end(stream(opening + delta('one') + onFire + delta('two') + done))
    })
    const response = await streamed(gateway)
    const events = await payloadsOf(response)
    expect(contentOf(events)).toBe('one')
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({
      error: { message: 'The engine is on fire.', type: 'upstream_error', code: 'upstream_failed', param: null },
    })
    expect(await recordOf(gateway, response)).toMatchObject({ status: 502, basis: 'estimated' })
  })

  test('with an error event before everything else is an ordinary error', async () => {
    const { gateway } = await gatewayTo((socket) => {
      socket.end(stream(onFire))
    })
    await costsNothing(gateway, await streamed(gateway))
  })

  test('with a last event that cannot be read is an error and an estimate', async () => {
    const broken = 'data: {"id":"c1","choices":[],"usage":{"prompt_tokens":5,"completion_tok\n\n'
    const { gateway } = await gatewayTo((socket) => {
      socket.end(stream(opening + delta('one') + finish + broken + done))
    })
    const response = await streamed(gateway)
    const events = await payloadsOf(response)
    expect(events).not.toContain('[DONE]')
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_failed' } })
    const record = await recordOf(gateway, response)
    expect(record.basis).toBe('estimated')
    expect(record.cost).toBeGreaterThan(0n)
  })

  test('in its middle event only passes that on as it came', async () => {
    const broken = 'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"unfini\n\n'
    const { gateway } = await gatewayTo((socket) => {
      const text = opening + delta('one') + broken + delta('two') + finish + usageEvent(4, 3) + done
      socket.end(stream(text))
    })
    const response = await streamed(gateway)
    const text = await response.text()
    expect(text).toContain(broken)
    expect(text).toEndWith(done)
    expect(await recordOf(gateway, response)).toMatchObject({ basis: 'vendor', usage: { input: 4, output: 3 } })
  })
})

/** So many of them, packed; never all of them at once in memory. */
async function zeros(bytes: number): Promise<Buffer> {
  const piece = Buffer.alloc(1024 * 1024)
  const gzip = createGzip({ level: 1 })
  const packed: Buffer[] = []
  gzip.on('data', (some: Buffer) => packed.push(some))
  for (let at = 0; at < bytes; at += piece.length) await new Promise((resolve) => gzip.write(piece, resolve))
  await new Promise<void>((resolve) => gzip.on('end', resolve).end())
  return Buffer.concat(packed)
}

// U-06, U-07, U-08, U-10, B-14
describe('an answer that is none', () => {
  test.each([
    ['a page', answer(200, '<!DOCTYPE html><h1>welcome to the edge</h1>', { 'content-type': 'text/html' })],
    ['half of an answer', answer(200, completion('Hi').slice(0, 60))],
    ['an error under 200', answer(200, JSON.stringify({ error: { message: 'no', type: 'server_error' } }))],
    ['an answer without choices', answer(200, JSON.stringify({ id: 'c1', object: 'chat.completion' }))],
    ['an empty body', answer(200, '')],
    ['null', answer(200, 'null')],
    ['a list', answer(200, '[]')],
    ['nothing at all', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['a redirect', answer(302, '', { location: 'http://127.0.0.1:9/elsewhere' })],
    ['a status nobody knows', answer(299, completion('Hi'))],
    ['a page from a proxy', answer(502, '<h1>bad gateway</h1>', { 'content-type': 'text/html' })],
    ['a refusal without words', answer(400, '')],
  ])('%s is a 502 of ours, whole or streamed, and costs nothing', async (_name, bytes) => {
    const { gateway } = await gatewayTo((socket) => void socket.write(bytes))
    for (const response of [await whole(gateway), await streamed(gateway)]) {
      await costsNothing(gateway, response)
      const text = await response.clone().text()
      expect(text).not.toContain('<')
      expect(await errorOf(response)).toMatchObject({ type: 'upstream_error', param: null })
    }
  })

  // B-14
  test('a packed body is not unpacked: a kilobyte must not become a gigabyte', async () => {
    const bomb = await zeros(256 * 1024 * 1024)
    expect(bomb.length).toBeLessThan(4 * 1024 * 1024)
    // What is small and would be good is not unpacked either, so that nothing ever grows.
    let packed: Buffer = gzipSync(completion('Hi'))
    const { gateway, vendor } = await gatewayTo((socket) => {
      const length = packed.length
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${length}\r\n\r\n`,
      )
      socket.write(packed)
    })
    for (const ask of [whole, streamed]) expect((await ask(gateway)).status).toBe(502)
    expect(vendor.requests[0]?.head).toMatch(/accept-encoding: identity/i)
    packed = bomb
    for (const ask of [whole, streamed]) expect((await ask(gateway)).status).toBe(502)
  })

  test('an answer without an end is cut at its limit', async () => {
    const filler = chunk('x'.repeat(1024 * 1024))
    const { gateway, vendor } = await gatewayTo(async (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n')
      socket.write(chunk('{"choices":["'))
      await flood(socket, filler)
    })
    await costsNothing(gateway, await whole(gateway))
    expect(vendor.requests).toHaveLength(1)
  })

  test('an event without an end is cut at a megabyte', async () => {
    const filler = chunk('x'.repeat(64 * 1024))
    let sent = 0
    const { gateway } = await gatewayTo(async (socket) => {
      socket.write(streamHead)
      socket.write(chunk(`${opening}${delta('one')}data: "`))
      sent = await flood(socket, filler)
    })
    const response = await streamed(gateway)
    const events = await payloadsOf(response)
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_failed' } })
    await until(() => sent > 0)
    expect(sent).toBeLessThan(16 * 1024 * 1024)
    expect((await recordOf(gateway, response)).cost).toBeGreaterThan(0n)
  })

  test('a stream that goes on beyond its cap is cut, and costs no more than was held', async () => {
    const many = chunk(delta('and on and on ').repeat(500))
    const { gateway } = await gatewayTo(async (socket) => {
      socket.write(streamHead)
      await flood(socket, many)
    })
    const { id, key } = await gateway.account({ dollars: '1' })
    const response = await gateway.post('/v1/chat/completions', body({ stream: true, max_tokens: 5 }), {
      authorization: `Bearer ${key}`,
    })
    const events = await payloadsOf(response)
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_failed' } })
    const [hold] = await holdsOf(gateway, id)
    const record = await recordOf(gateway, response)
    expect(record.basis).toBe('estimated')
    expect(record.cost).toBeGreaterThan(0n)
    expect(record.cost).toBeLessThanOrEqual(hold?.amount ?? 0n)
  })
})

// U-09
describe('bytes however they come', () => {
  test('split anywhere, with other line ends and comments, they make the same answer', async () => {
    const gateway = await startTestGateway()
    open = { gateway, stops: [] }
    const ask = async (words: string) => {
      const more = { stream: true, stream_options: { include_usage: true }, seed: 1 }
      const response = await gateway.post('/v1/chat/completions', says(`Say it. ${words}`, more))
      return payloadsOf(response)
    }
    const plain = await ask('sandbox:unicode')
    const dripped = await ask('sandbox:unicode sandbox:drip=1')
    const odd = await ask('sandbox:unicode sandbox:drip=3 sandbox:crlf')
    expect(contentOf(plain).length).toBeGreaterThan(10)
    expect(contentOf(dripped).length).toBeGreaterThan(10)
    for (const events of [plain, dripped, odd]) {
      expect(contentOf(events)).not.toContain('\ufffd')
      expect(events.at(-1)).toBe('[DONE]')
      expect(JSON.parse(events.at(-2) ?? '')).toMatchObject({ choices: [], model: 'gpt-4o-mini' })
    }
  })

  test('one by one they are relayed byte for byte', async () => {
    const text = `: hello\r\n\r\n${opening}data:{"model":"m","choices":[{"delta":{"content":"日本 👩‍👩‍👧"}}]}\r\n\r\n`
    const rest = `event: odd\nid: 7\ndata: {"model":"m",\ndata: "choices":[{"delta":{"content":"x"}}]}\n\n`
    const { gateway } = await gatewayTo(async (socket) => {
      socket.write(streamHead)
      for (const byte of Buffer.from(text + rest + finish + usageEvent(5, 6) + done)) {
        await new Promise((resolve) => socket.write(chunk(Uint8Array.of(byte)), resolve))
      }
      socket.write(lastChunk)
    })
    const response = await streamed(gateway)
    expect(await response.text()).toBe(text + rest + finish + done)
    expect(await recordOf(gateway, response)).toMatchObject({ basis: 'vendor', usage: { input: 5, output: 6 } })
  })
})

const leaks = (host: string) => `Bad argument for ${vendorKey} at ${host}, see https://${host}/keys`

const leaky = (host: string) =>
  JSON.stringify({ error: { message: leaks(host), type: 'invalid_request_error', param: null, code: 'x' } })

// U-13, U-14
describe('what a vendor must not pass through us', () => {
  test('its headers', async () => {
    const odd = {
      'set-cookie': 'a=b',
      'x-turnpike-cost': '12345',
      'x-request-id': 'theirs',
      'access-control-allow-origin': '*',
      'openai-organization': 'operator-org',
      'x-odd': 'odd',
      server: 'theirs',
      ...Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`x-odd-${index}`, 'odd'])),
    }
    const { gateway } = await gatewayTo((socket, request) => {
      if (request.body['stream'] !== true) return void socket.write(answer(200, completion('Hi'), odd))
      const head = streamHead.replace(
        '\r\n\r\n',
        `\r\n${Object.entries(odd)
          .map(([name, value]) => `${name}: ${value}`)
          .join('\r\n')}\r\n\r\n`,
      )
      socket.end(
        Buffer.concat([
          Buffer.from(head),
          chunk(opening + delta('a') + finish + usageEvent(1, 1) + done),
          Buffer.from(lastChunk),
        ]),
      )
    })
    for (const response of [await whole(gateway), await streamed(gateway)]) {
      await response.text()
      expect(response.status).toBe(200)
      const ours = new Set(['x-request-id', 'x-turnpike-cost'])
      const passed = [...response.headers.keys()].filter((name) => name in odd && !ours.has(name))
      expect(passed).toEqual([])
      expect(response.headers.get('x-request-id')).toStartWith('req_')
      expect(response.headers.get('x-turnpike-cost')).not.toBe('12345')
    }
  })

  test.each([400, 401, 402, 403, 404, 409, 422, 429, 500, 503])(
    'its key and address, in a refusal with %d',
    async (status) => {
      const { gateway, vendor } = await gatewayTo((socket) => {
        const { host } = new URL(vendor.baseUrl)
        socket.write(answer(status, leaky(host)))
      })
      const { host } = new URL(vendor.baseUrl)
      const response = await whole(gateway)
      const text = await response.text()
      expect(text).not.toContain(vendorKey)
      expect(text).not.toContain(host)
      // A refused key is the operator's affair; a refused request is the client's.
      expect(response.status).toBe([400, 409, 422, 429].includes(status) ? status : 502)
    },
  )

  test('its key and address, in an error under 200 and in a stream', async () => {
    const { gateway, vendor } = await gatewayTo((socket, request) => {
      const { host } = new URL(vendor.baseUrl)
      if (request.body['stream'] !== true) return void socket.write(answer(200, leaky(host)))
      const text = opening + delta('one') + event(leaky(host))
      socket.end(stream(text))
    })
    const { host } = new URL(vendor.baseUrl)
    for (const response of [await whole(gateway), await streamed(gateway)]) {
      const text = await response.text()
      expect(text).toContain('Bad argument for [redacted] at [redacted]')
      expect(text).not.toContain(vendorKey)
      expect(text).not.toContain(host)
    }
  })

  test('what it calls the model', async () => {
    const { gateway } = await gatewayTo((socket, request) => {
      if (request.body['stream'] !== true)
        return void socket.write(answer(200, completion('Hi', { model: 'secret-2026-01-01' })))
      const text = (opening + delta('one') + finish + usageEvent(1, 1)).replaceAll(
        '"model":"m"',
        '"model":"secret-2026-01-01"',
      )
      socket.end(stream(text + done))
    })
    const shown = { stream_options: { include_usage: true } }
    for (const response of [await whole(gateway), await streamed(gateway, shown)]) {
      const text = await response.text()
      expect(text).toContain('"model":"m"')
      expect(text).not.toContain('secret')
    }
  })
})

const good: Reply = (socket) => void socket.write(answer(200, completion('Hi')))

const broken: Reply = (socket) => void socket.end(answer(200, completion('Hi')).slice(0, -30))

const failsWith =
  (status: number): Reply =>
  (socket) =>
    void socket.write(
      answer(status, JSON.stringify({ error: { message: 'no', type: 'server_error', param: null, code: null } })),
    )

// U-02, M-15
describe('several channels', () => {
  test.each([500, 503, 529, 401, 402, 403, 404, 429, 408])(
    'a %d of the first is made good by the second, and paid once',
    async (status) => {
      const { gateway, vendors } = await gatewayTo([failsWith(status), good])
      const response = await whole(gateway)
      expect(response.status).toBe(200)
      expect(vendors.map(({ requests }) => requests.length)).toEqual([1, 1])
      const record = await recordOf(gateway, response)
      // 10 tokens in at 1, 5 out at 10 micro-dollars.
      expect(record).toMatchObject({ cost: 60_000n, basis: 'vendor' })
      const attempts = await attemptsOf(gateway, response)
      expect(attempts.map((attempt) => [attempt.channel, attempt.status, attempt.vendor_cost as bigint])).toEqual([
        ['v0', status, 0n],
        ['v1', 200, 60_000n],
      ])
    },
  )

  test('a refusal of the request itself is not tried again', async () => {
    const { gateway, vendors } = await gatewayTo([failsWith(400), good])
    expect((await whole(gateway)).status).toBe(400)
    expect(vendors.map(({ requests }) => requests.length)).toEqual([1, 0])
  })

  test('an answer that broke off may have been paid for, so it is not tried again', async () => {
    const { gateway, vendors } = await gatewayTo([broken, good])
    expect((await whole(gateway)).status).toBe(502)
    expect(vendors.map(({ requests }) => requests.length)).toEqual([1, 0])
  })

  test('a kept connection that the vendor has just shut is tried once more on a new one', async () => {
    const { gateway, vendor } = await gatewayTo((socket, { call }) => {
      if (call === 2) return void socket.destroy()
      socket.write(answer(200, completion('Hi')))
    })
    expect((await whole(gateway)).status).toBe(200)
    const second = await whole(gateway)
    expect(second.status).toBe(200)
    expect(vendor.requests).toHaveLength(3)
    const ids = vendor.requests.map(({ head }) => /x-client-request-id: (\S+)/i.exec(head)?.[1])
    expect(new Set(ids).size).toBe(3)
    expect(await recordOf(gateway, second)).toMatchObject({ cost: 60_000n })
  })

  test('a vendor that always shuts the door is left alone after the tries that are allowed', async () => {
    const { gateway, vendor } = await gatewayTo((socket) => void socket.destroy(), 'limits: { attemptsMax: 2 }')
    await costsNothing(gateway, await whole(gateway))
    expect(vendor.requests.length).toBeLessThanOrEqual(2)
  })
})

describe('a key that the vendor refused', () => {
  test('rests for a while', async () => {
    const clock = movableClock()
    const refusal = JSON.stringify({ error: { message: 'no', code: 'invalid_api_key' } })
    const vendor = await startVendor(
      (socket, { call }) => void socket.write(call === 1 ? answer(401, refusal) : answer(200, completion('Hi'))),
    )
    const gateway = await startTestGateway({ clock, yaml: channelsTo({ v0: vendor }) })
    open = { gateway, stops: [() => vendor.stop()] }
    expect((await whole(gateway)).status).toBe(502)
    const resting = await whole(gateway)
    expect(resting.status).toBe(503)
    expect(Number(resting.headers.get('retry-after'))).toBeGreaterThan(0)
    clock.advance(61_000)
    expect((await whole(gateway)).status).toBe(200)
  })

  test('never rests where it leads to a simulator: play of one customer takes nothing from the others', async () => {
    const gateway = await startTestGateway()
    open = { gateway, stops: [] }
    const ask = (words: string) => gateway.post('/v1/chat/completions', says(words, { model: 'gpt-4o-mini' }))
    expect((await ask('sandbox:status=401')).status).toBe(502)
    expect((await ask('Hi')).status).toBe(200)
  })

  test('is not put away for a day because a vendor says so', async () => {
    const clock = movableClock()
    const vendor = await startVendor(
      (socket, { call }) =>
        void socket.write(
          call === 1
            ? answer(429, JSON.stringify({ error: { message: 'slow down' } }), { 'retry-after': '86400' })
            : answer(200, completion('Hi')),
        ),
    )
    const gateway = await startTestGateway({ clock, yaml: channelsTo({ v0: vendor }) })
    open = { gateway, stops: [() => vendor.stop()] }
    const first = await whole(gateway)
    expect(first.status).toBe(429)
    expect(first.headers.get('retry-after')).toBe('86400')
    clock.advance(61_000)
    expect((await whole(gateway)).status).toBe(200)
  })
})

const leave = async (gateway: TestGateway, vendor: RawVendor, more: Record<string, unknown>, key = gateway.key) => {
  const abort = new AbortController()
  const asked = fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body(more)),
    signal: abort.signal,
  }).then(
    (response) => response.text(),
    () => '',
  )
  await until(() => vendor.requests.length === 1)
  return { leaves: () => abort.abort(), asked: asked.catch(() => '') }
}

// M-11; in the middle of a stream, M-10: `test/faults/money.test.ts`, `streams.test.ts`.
describe('a client that leaves', () => {
  test.each([
    ['before the head of a stream', { stream: true }, ''],
    ['before the first event of a stream', { stream: true }, streamHead],
    ['before the head of an answer', {}, ''],
    ['before the body of an answer', {}, answer(200, completion('Hi')).slice(0, 120)],
  ])('%s ends the call at the vendor at once, and owes nothing', async (_name, more, written) => {
    const { gateway, vendor } = await gatewayTo(async (socket) => {
      if (written !== '') socket.write(written)
      await new Promise((resolve) => socket.once('close', resolve))
    })
    const { leaves } = await leave(gateway, vendor, more)
    leaves()
    await until(() => vendor.hangups === 1)
    await until(() => gateway.openHolds() === 0)
    expect(await lastRequestOf(gateway, gateway.accountId)).toMatchObject({ status: 499, cost: 0n })
  })
})

// M-14, and M-13 to M-20: `test/faults/money.test.ts`.
test('usage that no model can have had is charged up to the hold, and the rest is put aside', async () => {
  const absurd = { prompt_tokens: 10, completion_tokens: 9_007_199_254_740_991, total_tokens: 9_007_199_254_740_991 }
  const { gateway } = await gatewayTo((socket, request) => {
    if (request.body['stream'] !== true) return void socket.write(answer(200, completion('Hi', { usage: absurd })))
    const text = opening + delta('one') + finish + event({ choices: [], usage: absurd }) + done
    socket.end(stream(text))
  })
  const { id, key } = await gateway.account({ dollars: '1' })
  for (const stream of [false, true]) {
    const response = await gateway.post('/v1/chat/completions', body({ stream }), { authorization: `Bearer ${key}` })
    expect(response.status).toBe(200)
    await response.text()
    const record = await recordOf(gateway, response)
    const hold = (await holdsOf(gateway, id)).at(-1)
    expect(record.cost).toBe(hold?.amount ?? nano(0n))
  }
  expect((await gateway.balance(id)).posted).toBeGreaterThan(0n)
  expect(gateway.logged.join('')).toContain('usage beyond its hold')
})
