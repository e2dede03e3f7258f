import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createGzip, gzipSync } from 'node:zlib'
import { startTestGateway, until } from '../support/gateway.ts'
import { openBlackhole } from '../support/blackhole.ts'
import { costsNothing, gatewaysToVendors, hello, streamed, whole } from '../support/raw-vendors.ts'
import { attemptsOf, holdsOf, recordOf } from '../support/records.ts'
import { contentOf, errorOf, payloadsOf } from '../support/streams.ts'
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
  type Reply,
} from '../support/vendor.ts'

const { gatewayTo, opened } = gatewaysToVendors()

// U-01
describe('a vendor that cannot be reached', () => {
  let blackhole: Awaited<ReturnType<typeof openBlackhole>>
  beforeAll(async () => {
    blackhole = await openBlackhole()
  })
  afterAll(() => blackhole.close())

  test('a vendor that does not answer is given up after the connect timeout', async () => {
    const yaml = channelsTo({ hole: blackhole }, 'timeouts: { connectSeconds: 0.3 }')
    const gateway = await startTestGateway({ yaml })
    opened(gateway)
    // A busy machine may be late once. With the default, which is three seconds, every try would take as long as that.
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

  test('the next channel is tried after a vendor that does not answer', async () => {
    const vendor = await startVendor((socket) => void socket.write(answer(200, completion('Hi'))))
    const yaml = channelsTo({ hole: blackhole, good: vendor }, 'timeouts: { connectSeconds: 3 }')
    const gateway = await startTestGateway({ yaml })
    opened(gateway, vendor)
    const response = await whole(gateway)
    expect(response.status).toBe(200)
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ channel, status }) => ({ channel, status }))).toEqual([
      { channel: 'hole', status: 0 },
      { channel: 'good', status: 200 },
    ])
  })

  test('a closed port is a 502 that costs nothing and does not show the address', async () => {
    const shut = await startVendor(() => {})
    await shut.stop()
    const gateway = await startTestGateway({ yaml: channelsTo({ shut }) })
    opened(gateway)
    const response = await whole(gateway)
    await costsNothing(gateway, response)
    const text = await response.text()
    expect(text).not.toContain(new URL(shut.baseUrl).port)
  })
})

/** Says nothing until the gateway has gone. */
const silent: Reply = (socket) => new Promise((resolve) => socket.once('close', () => resolve()))

// U-04
describe('a slow vendor', () => {
  const timeouts = 'timeouts: { firstByteSeconds: 0.2, wholeAnswerSeconds: 0.3, idleSeconds: 0.25, totalSeconds: 0.8 }'

  // Enough for a vendor that is alive: on a busy machine its signs of life may be held up for some time.
  const idleMs = 3_000
  const patient = (totalSeconds: number) =>
    `timeouts: { firstByteSeconds: 30, idleSeconds: ${idleMs / 1_000}, totalSeconds: ${totalSeconds} }`

  test('a stream that does not begin in time is a 504 that costs nothing', async () => {
    const { gateway, vendor } = await gatewayTo(silent, timeouts)
    await costsNothing(gateway, await streamed(gateway), 504)
    await until(() => vendor.hangups === 1)
  })

  test('an answer that does not come in time is a 504 that costs nothing', async () => {
    const { gateway, vendor } = await gatewayTo(silent, timeouts)
    await costsNothing(gateway, await whole(gateway), 504)
    await until(() => vendor.hangups === 1)
  })

  test('a stream that stops after its head is a 504 that costs nothing', async () => {
    const { gateway } = await gatewayTo((socket) => void socket.write(streamHead), timeouts)
    await costsNothing(gateway, await streamed(gateway), 504)
  })

  test('a stream that stops in the middle ends with an error, and what came is charged', async () => {
    const { gateway } = await gatewayTo((socket) => {
      socket.write(streamHead)
      socket.write(chunk(opening + delta('one') + delta('two')))
    }, patient(60))
    const response = await streamed(gateway)
    const events = await payloadsOf(response)
    expect(contentOf(events)).toBe('onetwo')
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_timeout', param: null } })
    expect(await recordOf(gateway, response)).toMatchObject({ status: 504, basis: 'estimated' })
  })

  test('a stream of nothing but signs of life is cut off at the total limit', async () => {
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
    // Not before: signs of life keep it from being given up as silent.
    expect(performance.now() - startedAt).toBeGreaterThan(4_900)
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_timeout' } })
    expect((await recordOf(gateway, response)).cost).toBeGreaterThan(0n)
  })

  test('a slow stream with signs of life is waited for', async () => {
    const { gateway } = await gatewayTo(async (socket) => {
      socket.write(streamHead)
      const parts = [opening, delta('a'), ': ping\n\n', delta('b'), finish, usageEvent(3, 2), done]
      for (const part of parts) {
        // All of the pauses together are longer than the idle timeout.
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
 * A stream that breaks as soon as its client has read the last of it: a reset takes away what has not been read yet.
 * Gives what the client reads, from where that is noticed.
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
    ['by a clean end without a finish reason', (socket) => socket.end(lastChunk)],
    [
      'in the middle of an event',
      (socket) => socket.end(Buffer.concat([chunk('data: {"cho'), Buffer.from(lastChunk)])),
    ],
    ['by invalid chunks', (socket) => socket.end('zz\r\nnonsense')],
  ])('%s: the client gets what came, then an error, and never a false end', async (_name, how) => {
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

  test('a stream that breaks before any content costs nothing', async () => {
    const { gateway } = await gatewayTo((socket) => {
      socket.write(streamHead + chunk(opening).toString(), () => setTimeout(() => socket.destroy(), 30))
    })
    const response = await streamed(gateway)
    await response.text()
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n, basis: 'policy_zero' })
  })

  test("an error event ends the stream with the vendor's own message", async () => {
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

  test('an error event before everything else is an ordinary error that costs nothing', async () => {
    const { gateway } = await gatewayTo((socket) => {
      socket.end(stream(onFire))
    })
    await costsNothing(gateway, await streamed(gateway))
  })

  test('an unreadable last event is an error, charged by an estimate', async () => {
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

  test('an unreadable event in the middle is passed on as it came', async () => {
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

/** That many zero bytes, compressed without ever being in memory all at once. */
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
describe('an invalid answer', () => {
  test.each([
    ['an HTML page', answer(200, '<!DOCTYPE html><h1>welcome to the edge</h1>', { 'content-type': 'text/html' })],
    ['half of an answer', answer(200, completion('Hi').slice(0, 60))],
    ['an error with status 200', answer(200, JSON.stringify({ error: { message: 'no', type: 'server_error' } }))],
    ['an answer without choices', answer(200, JSON.stringify({ id: 'c1', object: 'chat.completion' }))],
    ['an empty body', answer(200, '')],
    ['null', answer(200, 'null')],
    ['a list', answer(200, '[]')],
    ['a 204 without a body', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['a redirect', answer(302, '', { location: 'http://127.0.0.1:9/elsewhere' })],
    ['an unknown status', answer(299, completion('Hi'))],
    ['an HTML page of a proxy', answer(502, '<h1>bad gateway</h1>', { 'content-type': 'text/html' })],
    ['a refusal without a message', answer(400, '')],
    ['an empty list of choices', answer(200, completion('', { choices: [] }))],
    [
      'a choice that failed',
      answer(200, completion('', { choices: [{ message: { content: '' }, error: { code: 502 } }] })),
    ],
    ['an end alone', stream(done)],
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
  test('a compressed body is a 502 and is not decompressed', async () => {
    const bomb = await zeros(256 * 1024 * 1024)
    expect(bomb.length).toBeLessThan(4 * 1024 * 1024)
    // A small and otherwise valid body is not decompressed either.
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
    // Nor is a plain body accepted that is only declared as compressed.
    packed = Buffer.from(completion('Hi'))
    expect((await whole(gateway)).status).toBe(502)
  })

  test('an endless answer is cut off and costs nothing', async () => {
    const filler = chunk('x'.repeat(1024 * 1024))
    const { gateway, vendor } = await gatewayTo(async (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n')
      socket.write(chunk('{"choices":["'))
      await flood(socket, filler)
    })
    await costsNothing(gateway, await whole(gateway))
    expect(vendor.requests).toHaveLength(1)
  })

  test('an endless event is cut off, and what came before it is charged', async () => {
    const filler = chunk('x'.repeat(64 * 1024))
    let sent = 0
    const { gateway } = await gatewayTo(async (socket) => {
      socket.write(streamHead)
      socket.write(chunk(`${opening}${delta('one')}data: "`))
      sent = await flood(socket, filler)
    })
    const response = await streamed(gateway)
    const events = await payloadsOf(response)
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({
      error: { code: 'upstream_failed', message: expect.stringContaining('more than 1048576 bytes') },
    })
    await until(() => sent > 0)
    expect(sent).toBeLessThan(16 * 1024 * 1024)
    expect((await recordOf(gateway, response)).cost).toBeGreaterThan(0n)
  })

  test('an event just below a megabyte is relayed whole', async () => {
    const long = delta('x'.repeat(1_040_000))
    const { gateway } = await gatewayTo(
      (socket) => void socket.end(stream(opening + long + finish + usageEvent(4, 3) + done)),
    )
    const text = await (await streamed(gateway)).text()
    expect(text.includes(long)).toBe(true)
    expect(text).toEndWith(done)
  })

  test('a stream that goes on beyond its cap is cut off and costs no more than was held', async () => {
    const many = chunk(delta('and on and on ').repeat(500))
    let sent = 0
    const { gateway } = await gatewayTo(async (socket) => {
      socket.write(streamHead)
      sent = await flood(socket, many)
    })
    const { id, key } = await gateway.account({ dollars: '1' })
    const response = await gateway.post('/v1/chat/completions', hello({ stream: true, max_tokens: 5 }), {
      authorization: `Bearer ${key}`,
    })
    const events = await payloadsOf(response)
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_failed' } })
    await until(() => sent > 0)
    expect(sent).toBeLessThan(16 * 1024 * 1024)
    const [hold] = await holdsOf(gateway, id)
    const record = await recordOf(gateway, response)
    expect(record.basis).toBe('estimated')
    expect(record.cost).toBeGreaterThan(0n)
    expect(record.cost).toBeLessThanOrEqual(hold?.amount ?? 0n)
  })
})
