import { describe, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { costsNothing, gatewaysToVendors, hello, streamed, vendorKey, whole } from '../support/raw-vendors.ts'
import { attemptsOf, holdsOf, lastRequestOf, recordOf } from '../support/records.ts'
import { contentOf, payloadsOf, says } from '../support/streams.ts'
import {
  answer,
  channelsTo,
  chunk,
  completion,
  delta,
  done,
  event,
  finish,
  lastChunk,
  opening,
  startVendor,
  stream,
  streamHead,
  usageEvent,
  type RawVendor,
  type Reply,
} from '../support/vendor.ts'

// What clients see of a vendor, and what becomes of its channels and credentials.

const { gatewayTo, opened } = gatewaysToVendors()

// U-09
describe('a stream in odd pieces', () => {
  test('a stream split at any byte, with CRLF and comments, arrives whole and with intact characters', async () => {
    const gateway = await startTestGateway()
    opened(gateway)
    for (const words of ['', 'sandbox:drip=1', 'sandbox:drip=3 sandbox:crlf']) {
      const ask = (more: object) =>
        gateway.post('/v1/chat/completions', says(`Say it. sandbox:unicode ${words}`, { seed: 1, ...more }))
      const whole = (await (await ask({})).json()) as { choices: [{ message: { content: string } }] }
      const events = await payloadsOf(await ask({ stream: true, stream_options: { include_usage: true } }))
      expect(contentOf(events)).toBe(whole.choices[0].message.content)
      expect(contentOf(events)).toMatch(/\P{ASCII}/u)
      expect(contentOf(events)).not.toContain('\ufffd')
      expect(events.at(-1)).toBe('[DONE]')
      expect(JSON.parse(events.at(-2) ?? '')).toMatchObject({ choices: [], model: 'gpt-4o-mini' })
    }
  })

  test('a stream that comes byte by byte is relayed byte for byte', async () => {
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

const broke = { choices: [{ index: 0, delta: {}, finish_reason: 'error' }] }

const leaky = (host: string) =>
  JSON.stringify({ error: { message: leaks(host), type: 'invalid_request_error', param: null, code: 'x' } })

// U-13, U-14
describe('details of a vendor that clients must not see', () => {
  test("the vendor's headers are not passed on", async () => {
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
    "the vendor's credential and address do not appear in a refusal with %d",
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

  test("the vendor's credential and address are redacted in an error under 200 and in a stream", async () => {
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

  test.each([
    ['a plain text', (said: string) => event({ error: said })],
    ['an event named error', (said: string) => `event: error\n${event({ message: said })}`],
    ['the finish_reason error', (said: string) => event({ ...broke, error: { message: said } })],
  ])("the vendor's credential and address are redacted in a stream with its error as %s", async (_how, told) => {
    const { gateway, vendor } = await gatewayTo((socket) => {
      socket.end(stream(opening + delta('one') + told(leaks(new URL(vendor.baseUrl).host))))
    })
    const response = await streamed(gateway)
    const text = await response.text()
    expect(text).toContain('Bad argument for [redacted] at [redacted]')
    expect(text).not.toContain(vendorKey)
    expect(text).not.toContain(new URL(vendor.baseUrl).host)
    expect(await recordOf(gateway, response)).toMatchObject({ status: 502, basis: 'estimated', usage: { output: 1 } })
  })

  test("the vendor's name of the model is replaced by ours", async () => {
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

/** Shuts the kept connection when the second call arrives on it. */
const losesSecond: Reply = (socket, { call }) => {
  if (call === 2) return void socket.destroy()
  socket.write(answer(200, completion('Hi')))
}
const failsWith =
  (status: number): Reply =>
  (socket) =>
    void socket.write(
      answer(status, JSON.stringify({ error: { message: 'no', type: 'server_error', param: null, code: null } })),
    )

// U-02, M-15
describe('a model with several channels', () => {
  test.each([500, 503, 529, 401, 402, 403, 404, 429, 408])(
    'a %d of the first channel is retried on the second and charged once',
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

  test('a refusal of the request itself is not retried', async () => {
    const { gateway, vendors } = await gatewayTo([failsWith(400), good])
    expect((await whole(gateway)).status).toBe(400)
    expect(vendors.map(({ requests }) => requests.length)).toEqual([1, 0])
  })

  test('an answer that breaks off is not retried, since it may have been charged', async () => {
    const { gateway, vendors } = await gatewayTo([broken, good])
    expect((await whole(gateway)).status).toBe(502)
    expect(vendors.map(({ requests }) => requests.length)).toEqual([1, 0])
  })

  test('a call on a kept connection that the vendor has just closed is retried on a new one', async () => {
    const { gateway, vendor } = await gatewayTo(losesSecond)
    expect((await whole(gateway)).status).toBe(200)
    const second = await whole(gateway)
    expect(second.status).toBe(200)
    expect(vendor.requests).toHaveLength(3)
    const ids = vendor.requests.map(({ head }) => /x-client-request-id: (\S+)/i.exec(head)?.[1])
    expect(new Set(ids).size).toBe(3)
    expect(await recordOf(gateway, second)).toMatchObject({ cost: 60_000n })
  })

  test('a vendor that always closes the connection is called at most attemptsMax times', async () => {
    const { gateway, vendor } = await gatewayTo((socket) => void socket.destroy(), 'limits: { attemptsMax: 2 }')
    await costsNothing(gateway, await whole(gateway))
    expect(vendor.requests.length).toBeLessThanOrEqual(2)
  })

  test.each([1, 2, 3])('of three channels that fail, %d are called where that is attemptsMax', async (most) => {
    const failing = [failsWith(503), failsWith(503), failsWith(503)]
    const { gateway, vendors } = await gatewayTo(failing, `limits: { attemptsMax: ${most} }`)
    await costsNothing(gateway, await whole(gateway))
    expect(vendors.flatMap(({ requests }) => requests)).toHaveLength(most)
  })

  test('a call that was lost with its kept connection is not repeated beyond attemptsMax', async () => {
    const { gateway, vendor } = await gatewayTo(losesSecond, 'limits: { attemptsMax: 1 }')
    expect((await whole(gateway)).status).toBe(200)
    expect((await whole(gateway)).status).toBe(502)
    expect(vendor.requests).toHaveLength(2)
  })
})

describe('a credential that a vendor refused', () => {
  test('a refused credential rests for a while and is then used again', async () => {
    const clock = movableClock()
    const refusal = JSON.stringify({ error: { message: 'no', code: 'invalid_api_key' } })
    const vendor = await startVendor(
      (socket, { call }) => void socket.write(call === 1 ? answer(401, refusal) : answer(200, completion('Hi'))),
    )
    const gateway = await startTestGateway({ clock, yaml: channelsTo({ v0: vendor }) })
    opened(gateway, vendor)
    expect((await whole(gateway)).status).toBe(502)
    const resting = await whole(gateway)
    expect(resting.status).toBe(503)
    expect(Number(resting.headers.get('retry-after'))).toBeGreaterThan(0)
    clock.advance(61_000)
    expect((await whole(gateway)).status).toBe(200)
  })

  test('a credential of a simulator never rests, so that no customer can block the others', async () => {
    const gateway = await startTestGateway()
    opened(gateway)
    const ask = (words: string) => gateway.post('/v1/chat/completions', says(words, { model: 'gpt-4o-mini' }))
    expect((await ask('sandbox:status=401')).status).toBe(502)
    expect((await ask('Hi')).status).toBe(200)
  })

  test('a vendor that asks for a day, in milliseconds, does not put the credential aside for a day', async () => {
    const clock = movableClock()
    const vendor = await startVendor(
      (socket, { call }) =>
        void socket.write(
          call === 1
            ? answer(429, JSON.stringify({ error: { message: 'slow down' } }), { 'retry-after-ms': '86400000' })
            : answer(200, completion('Hi')),
        ),
    )
    const gateway = await startTestGateway({ clock, yaml: channelsTo({ v0: vendor }) })
    opened(gateway, vendor)
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
    body: JSON.stringify(hello(more)),
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
    ['before the headers of a stream', { stream: true }, ''],
    ['before the first event of a stream', { stream: true }, streamHead],
    ['before the headers of an answer', {}, ''],
    ['before the body of an answer', {}, answer(200, completion('Hi')).slice(0, 120)],
  ])('a client that leaves %s ends the call at the vendor and pays nothing', async (_name, more, written) => {
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
test('absurd usage is charged up to the hold, and the excess is logged', async () => {
  const absurd = { prompt_tokens: 10, completion_tokens: 9_007_199_254_740_991, total_tokens: 9_007_199_254_740_991 }
  const { gateway } = await gatewayTo((socket, request) => {
    if (request.body['stream'] !== true) return void socket.write(answer(200, completion('Hi', { usage: absurd })))
    const text = opening + delta('one') + finish + event({ choices: [], usage: absurd }) + done
    socket.end(stream(text))
  })
  const { id, key } = await gateway.account({ dollars: '1' })
  for (const stream of [false, true]) {
    const response = await gateway.post('/v1/chat/completions', hello({ stream }), { authorization: `Bearer ${key}` })
    expect(response.status).toBe(200)
    await response.text()
    const record = await recordOf(gateway, response)
    const hold = (await holdsOf(gateway, id)).at(-1)
    expect(record.cost).toBe(hold?.amount ?? nano(0n))
  }
  expect((await gateway.balance(id)).posted).toBeGreaterThan(0n)
  expect(gateway.logged.join('')).toContain('usage exceeds the hold')
})
