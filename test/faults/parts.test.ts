import { afterEach, describe, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import type { Billing } from '../../src/billing/billing.ts'
import { DiskFull } from '../../src/billing/leased/disk.ts'
import { makeStrictBilling } from '../../src/billing/strict.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { attemptsOf, booked, lastRequestOf, recordOf } from '../support/records.ts'
import { errorOf } from '../support/streams.ts'
import { answer, chunk, lastChunk, startVendor, type RawVendor, type Reply } from '../support/vendor.ts'

// Requests that take several calls to a vendor: embeddings in batches, and speech in pieces.

let gateway: TestGateway
let vendor: RawVendor
afterEach(async () => {
  await gateway.assertBooks()
  await gateway.close()
  await vendor.stop()
})

async function start(reply: Reply, options: Parameters<typeof startTestGateway>[0] = {}): Promise<void> {
  vendor = await startVendor(reply)
  gateway = await startTestGateway({
    ...options,
    yaml: `
sandbox: false
channels:
  - { id: own, vendor: compatible, baseUrl: "${vendor.baseUrl}", keys: ["vendor-key"] }
  - { id: next, vendor: compatible, baseUrl: "${vendor.baseUrl}", keys: ["other-key"], priority: 1 }
models:
  - id: vectors
    capability: embeddings
    channels: [{ channel: own }, { channel: next }]
    embeddings: { dimensions: [2], dimensionsDefault: 2, batchMax: 1 }
    prices: { inputPerMillion: "1" }
  - id: voice
    capability: speech
    channels: [{ channel: own }]
    speech: { formats: [pcm], charactersMax: 20 }
    prices: { perMillionCharacters: "10" }
  - id: told-voice
    capability: speech
    channels: [{ channel: own }]
    speech: { formats: [pcm], charactersMax: 20 }
    prices: { inputPerMillion: "1", audioOutputPerMillion: "10" }
`,
  })
}

/** A full disk has no room for a mark, but still has for a settlement. */
const mark = () => {
  throw new DiskFull()
}

function markingNothing(parts: Parameters<typeof makeStrictBilling>[0]): Billing {
  const strict = makeStrictBilling(parts)
  return {
    async take(order) {
      const taken = await strict.take(order)
      return taken.kind === 'hold' ? { ...taken, hold: { ...taken.hold, mark } } : taken
    },
  }
}

const embed = (input: readonly string[]) => gateway.post('/v1/embeddings', { model: 'vectors', input })

/** Each text is a number, and its vector says which. */
function vectorFor(input: unknown): string {
  const data = [{ object: 'embedding', index: 0, embedding: [1, Number(input)] }]
  return answer(200, JSON.stringify({ object: 'list', data, usage: { prompt_tokens: 3, total_tokens: 3 } }))
}

type Vectors = { data: { embedding: number[] }[]; usage: { total_tokens: number } }
const numbersIn = async (response: Response) =>
  ((await response.json()) as Vectors).data.map(({ embedding }) => embedding[1])

const inputOf = (body: Record<string, unknown>) => (body['input'] as readonly string[])[0]

describe('embeddings in batches', () => {
  test('a batch that fails is retried alone, and the answer is complete', async () => {
    let failures = 0
    await start((socket, { body }) => {
      const fails = inputOf(body) === '2' && failures++ === 0
      socket.write(fails ? answer(500, '{"error":{"message":"broken"}}') : vectorFor(inputOf(body)))
    })
    const response = await embed(['1', '2', '3'])
    expect(await numbersIn(response)).toEqual([1, 2, 3])
    expect(vendor.requests).toHaveLength(4)
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.filter(({ status }) => status === 500)).toMatchObject([{ vendor_cost: 0n }])
    expect(attempts.filter(({ vendor_cost: cost }) => cost === 3_000n)).toHaveLength(3)
    expect(await recordOf(gateway, response)).toMatchObject({ usage: { input: 9 }, cost: 9_000n, basis: 'vendor' })
  })

  test('batches come back in the order of the inputs, with at most eight calls at a time', async () => {
    let running = 0
    let most = 0
    const eight = Promise.withResolvers<void>()
    await start(async (socket, { body }) => {
      most = Math.max(most, ++running)
      if (running === 8) eight.resolve()
      await eight.promise // however long a busy machine needs to send them
      const input = Number(inputOf(body))
      await new Promise((resolve) => setTimeout(resolve, (20 - input) * 2))
      running--
      socket.write(vectorFor(input))
    })
    const inputs = Array.from({ length: 20 }, (_, at) => String(at))
    expect(await numbersIn(await embed(inputs))).toEqual(inputs.map(Number))
    expect(most).toBe(8)
  })

  test('no further batch is sent after one has failed for good', async () => {
    await start((socket, { body }) => {
      socket.write(inputOf(body) === '0' ? answer(422, '{"error":{"message":"no"}}') : vectorFor(inputOf(body)))
    })
    const response = await embed(Array.from({ length: 200 }, (_, at) => String(at)))
    expect(await errorOf(response)).toMatchObject({ status: 422, message: 'no' })
    expect(vendor.requests.length).toBeLessThan(200)
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  })

  test.each(['strict', 'leased'] as const)(
    'a batch that keeps failing beside batches that are paid for makes the failure final (%s)',
    async (mode) => {
      const broken = answer(503, '{"error":{"message":"broken"}}')
      await start((socket, { body }) => void socket.write(inputOf(body) === '2' ? broken : vectorFor(inputOf(body))), {
        mode,
      })
      const before = await gateway.balance()
      const send = () =>
        gateway.post('/v1/embeddings', { model: 'vectors', input: ['1', '2', '3'] }, { 'idempotency-key': 'once' })
      const response = await send()
      expect((await errorOf(response)).status).toBe(502)
      expect(response.headers.get('x-should-retry')).toBe('false')
      expect(await errorOf(await send())).toMatchObject({ status: 502, code: 'upstream_failed' })

      // Two once and one three times, and the next channel never.
      expect(vendor.requests).toHaveLength(5)
      const attempts = await attemptsOf(gateway, response)
      expect(
        attempts.map((each) => `${each.channel} ${each.status} ${each.vendor_cost} ${each.delivered}`).toSorted(),
      ).toEqual(['own 200 3000 false', 'own 200 3000 false', ...Array.from({ length: 3 }, () => 'own 503 0 false')])
      expect(await recordOf(gateway, response)).toMatchObject({ status: 502, cost: 0n, basis: 'policy_zero' })
      expect(await booked(gateway, 'platform:loss')).toBe(nano(-6_000n))
      expect(await booked(gateway, 'payable:compatible')).toBe(nano(6_000n))
      expect(await gateway.balance()).toEqual(before)
    },
  )

  test.each([503, 429])(
    'batches that are all answered with a %d go to the next channel after one call each',
    async (status) => {
      const busy = answer(status, '{"error":{"message":"busy"}}', { 'retry-after': '4' })
      await start((socket, { head, body }) => {
        socket.write(head.includes('vendor-key') ? busy : vectorFor(inputOf(body)))
      })
      const response = await embed(['1', '2', '3', '4'])
      expect(await numbersIn(response)).toEqual([1, 2, 3, 4])
      const attempts = await attemptsOf(gateway, response)
      expect(attempts.filter(({ channel }) => channel === 'own').map((each) => each.status)).toEqual(
        Array.from({ length: 4 }, () => status),
      )
      expect(await recordOf(gateway, response)).toMatchObject({ usage: { input: 12 }, cost: 12_000n, basis: 'vendor' })
    },
  )

  test('failing batches of one request count as one failure of their channel', async () => {
    const broken = answer(500, '{"error":{"message":"broken"}}')
    const chokesOn = new Set<string | undefined>(['2', '3'])
    await start((socket, { body }) => {
      socket.write(chokesOn.has(inputOf(body)) ? broken : vectorFor(inputOf(body)))
    })
    expect((await embed(['1', '2', '3'])).status).toBe(502)
    expect(gateway.logged.filter((line) => line.includes('a channel keeps failing'))).toEqual([])
    const next = await embed(['4'])
    expect((await attemptsOf(gateway, next)).map(({ channel }) => channel)).toEqual(['own'])
  })

  test('two batches that fail are both on record', async () => {
    const both = Promise.withResolvers<void>()
    await start(async (socket, { call }) => {
      if (call === 2) both.resolve()
      await both.promise
      socket.write(answer(422, '{"error":{"message":"no"}}'))
    })
    const response = await embed(['1', '2'])
    expect(await errorOf(response)).toMatchObject({ status: 422, message: 'no' })
    const refs = vendor.requests.map(({ head }) => /x-client-request-id: (\S+)/i.exec(head)?.[1] ?? '')
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ id }) => id).toSorted()).toEqual(refs.toSorted())
    expect(attempts.map(({ status }) => status)).toEqual([422, 422])
  })

  test('a refused batch beside one that broke off makes the failure final', async () => {
    const both = Promise.withResolvers<void>()
    await start(async (socket, { body, call }) => {
      if (call === 2) both.resolve()
      await both.promise
      if (inputOf(body) === '1') return void socket.write(answer(400, '{"error":{"message":"no"}}'))
      setTimeout(() => socket.destroy(), 100) // behind the refusal, which would not be final alone
    })
    const response = await embed(['1', '2'])
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect((await attemptsOf(gateway, response)).map(({ status }) => String(status)).toSorted()).toEqual(['0', '400'])
  })

  test('a client that leaves ends all batches', async () => {
    await start(() => new Promise(() => {}))
    const abort = new AbortController()
    const sent = fetch(`${gateway.url}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'vectors', input: Array.from({ length: 30 }, (_, at) => String(at)) }),
      signal: abort.signal,
    }).catch(() => 'left')
    await until(() => vendor.requests.length === 8)
    abort.abort()
    expect(await sent).toBe('left')
    await until(() => gateway.openHolds() === 0 && vendor.hangups === 8)
    expect(vendor.requests).toHaveLength(8)
  })
})

describe('speech in pieces', () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: audio/pcm\r\ntransfer-encoding: chunked\r\n\r\n'
  const text = 'One short sentence. And one more here. '

  test('a later piece that fails before its audio begins is requested again', async () => {
    await start((socket, { body, call }) => {
      if (call === 2) return void socket.write(answer(503, '{"error":{"message":"busy"}}'))
      const audio = String(body['input']).startsWith('One') ? [1, 0] : [2, 0]
      socket.write(Buffer.concat([Buffer.from(head), chunk(Uint8Array.from(audio)), Buffer.from(lastChunk)]))
    })
    const response = await gateway.post('/v1/audio/speech', { model: 'voice', input: text, response_format: 'pcm' })
    expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([1, 0, 2, 0])
    expect(vendor.requests.map(({ body }) => body['input'])).toEqual([
      text.slice(0, 20),
      text.slice(20),
      text.slice(20),
    ])
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ status, vendor_cost: cost }) => [status, cost])).toContainEqual([503, nano(0n)])
    // Both pieces at 10 dollars a million, and nothing for the try in between.
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 390_000n, basis: 'estimated', status: 200 })
  })

  /** Audio as events, of which the last does not come although the response ends properly. */
  const withoutEnd = (...sound: readonly number[]) =>
    start((socket) => {
      const audio = Buffer.from(sound).toString('base64')
      const event = `data: ${JSON.stringify({ type: 'speech.audio.delta', audio })}\n\n`
      socket.write(
        Buffer.concat([
          Buffer.from(head.replace('audio/pcm', 'text/event-stream')),
          chunk(event),
          Buffer.from(lastChunk),
        ]),
      )
    })

  test('audio that breaks off before it fills a frame is a 502 and costs nothing', async () => {
    await withoutEnd(1, 0, 2, 0)
    const response = await gateway.post('/v1/audio/speech', { model: 'told-voice', input: 'Hi' })
    expect((await errorOf(response)).status).toBe(502)
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(await recordOf(gateway, response)).toMatchObject({ status: 502, cost: 0n })
    // What the vendor may charge is our loss.
    const [attempt] = await attemptsOf(gateway, response)
    expect(attempt?.vendor_cost).toBeGreaterThan(0n)
  })

  test('audio that breaks off right after its first samples is delivered to the last sample', async () => {
    await withoutEnd(1, 0, 2, 0)
    const asked = { model: 'told-voice', input: 'Hi', response_format: 'pcm' }
    const response = await gateway.post('/v1/audio/speech', asked)
    const reader = response.body?.getReader()
    expect([...((await reader?.read())?.value ?? [])]).toEqual([1, 0, 2, 0])
    expect(await reader?.read().catch(() => 'cut off')).toBe('cut off')
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ status: 502, basis: 'estimated' })
    expect(record.cost).toBeGreaterThan(0n)
  })

  test('a client that leaves in the middle of a wav is charged by an estimate', async () => {
    const audio = Buffer.concat([Buffer.from(head), chunk(Uint8Array.of(1, 0))])
    await start((socket, { call }) => {
      socket.write(audio)
      if (call === 1) return new Promise(() => {})
      socket.write(lastChunk)
    })
    const { id, key } = await gateway.account()
    const abort = new AbortController()
    const sent = fetch(`${gateway.url}/v1/audio/speech`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'voice', input: 'Hi', response_format: 'wav' }),
      signal: abort.signal,
    }).catch(() => 'left')
    await until(() => vendor.requests.length === 1)
    // A whole request that was sent later: when it is answered, the audio of the first one has arrived.
    await (await gateway.post('/v1/audio/speech', { model: 'voice', input: 'Hi', response_format: 'wav' })).bytes()
    abort.abort()
    expect(await sent).toBe('left')
    await until(() => gateway.openHolds() === 0 && vendor.hangups === 1)
    expect(await lastRequestOf(gateway, id)).toMatchObject({ status: 499, basis: 'estimated', cost: 20_000n })
  })

  test('a client that leaves while a later piece is requested pays for the first, with both calls on record', async () => {
    await start((socket, { call }) => {
      if (call > 1) return new Promise(() => {})
      socket.write(Buffer.concat([Buffer.from(head), chunk(Uint8Array.of(1, 0)), Buffer.from(lastChunk)]))
    })
    const response = await gateway.post('/v1/audio/speech', { model: 'voice', input: text, response_format: 'pcm' })
    const reader = response.body?.getReader()
    await reader?.read()
    await until(() => vendor.requests.length === 2)
    await reader?.cancel()
    await until(() => vendor.hangups === 1 && gateway.openHolds() === 0)
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ status, delivered }) => `${status} ${delivered}`).toSorted()).toEqual([
      '0 false',
      '200 true',
    ])
    expect(await recordOf(gateway, response)).toMatchObject({ status: 499, cost: 200_000n, basis: 'estimated' })
  })

  test('a mark that cannot be written ends the piece being requested, which stays on record', async () => {
    await start(
      (socket, { call }) => {
        if (call > 1) return new Promise(() => {}) // the vendor works on it and sends nothing
        socket.write(Buffer.concat([Buffer.from(head), chunk(Uint8Array.of(1, 0)), Buffer.from(lastChunk)]))
      },
      { billing: markingNothing },
    )
    const response = await gateway.post('/v1/audio/speech', { model: 'voice', input: text, response_format: 'pcm' })
    expect(await response.arrayBuffer().catch(() => 'cut off')).toBe('cut off')
    await until(() => vendor.hangups === 1 && gateway.openHolds() === 0)
    expect(vendor.requests).toHaveLength(2)
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ status, delivered }) => `${status} ${delivered}`).toSorted()).toEqual([
      '0 false',
      '200 true',
    ])
    // The first piece alone: 20 characters at 10 dollars a million.
    expect(await recordOf(gateway, response)).toMatchObject({ status: 500, cost: 200_000n, basis: 'estimated' })
  }, 120_000)

  test('half a sample is a 502 and costs nothing', async () => {
    await start((socket) => {
      socket.write(Buffer.concat([Buffer.from(head), chunk(Uint8Array.of(1)), Buffer.from(lastChunk)]))
    })
    for (const response_format of ['mp3', 'wav']) {
      const response = await gateway.post('/v1/audio/speech', { model: 'voice', input: 'Hi', response_format })
      expect((await errorOf(response)).status).toBe(502)
      expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
    }
  })

  test('audio without an end is cut off and charged by an estimate', async () => {
    await start(async (socket) => {
      socket.write(head)
      const second = chunk(new Uint8Array(1024 * 1024))
      while (!socket.destroyed) {
        if (!socket.write(second)) await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
      }
    })
    const response = await gateway.post('/v1/audio/speech', { model: 'voice', input: 'Hi', response_format: 'pcm' })
    expect(await response.arrayBuffer().catch(() => 'cut off')).toBe('cut off')
    expect(await recordOf(gateway, response)).toMatchObject({
      status: 502,
      usage: { character: 2 },
      basis: 'estimated',
    })
  })

  test('a page instead of audio is a 502', async () => {
    await start((socket) => {
      socket.write(answer(200, '<html>busy</html>', { 'content-type': 'text/html' }))
    })
    const response = await gateway.post('/v1/audio/speech', { model: 'voice', input: 'Hi' })
    expect((await errorOf(response)).status).toBe(502)
  })
})
