import { afterEach, describe, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import { compatible } from '../../src/vendors/compatible/compatible.ts'
import { vendors } from '../../src/vendors/index.ts'
import type { Vendor } from '../../src/vendors/vendor.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { jsonPost, openSocket } from '../support/raw-socket.ts'
import { attemptsOf, lastRequestOf, recordOf } from '../support/records.ts'
import { says } from '../support/streams.ts'
import {
  answer,
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

let open: { gateway: TestGateway; vendor: RawVendor } | undefined

afterEach(async () => {
  if (open === undefined) return
  const { gateway, vendor } = open
  open = undefined
  try {
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})

async function gatewayTo(reply: Reply, vendorId = 'compatible') {
  const vendor = await startVendor(reply)
  const baseUrl = vendorId === 'anthropic' ? new URL(vendor.baseUrl).origin : vendor.baseUrl
  const yaml = `
sandbox: false
channels:
  - { id: v, vendor: ${vendorId}, baseUrl: "${baseUrl}", keys: [vendor-key] }
models:
  - id: m
    capability: chat
    channels: [{ channel: v }]
    outputTokensMax: 100000
    prices: { inputPerMillion: "1", outputPerMillion: "10" }
`
  const gateway = await startTestGateway({ yaml, mode: 'leased' })
  open = { gateway, vendor }
  return { gateway, vendor }
}

const head = Buffer.from(streamHead)

const streamRequest = (gateway: TestGateway, more: object = {}) =>
  jsonPost(gateway, says('Hello!', { model: 'm', stream: true, ...more }))

const mebibyte = 1024 * 1024

const called = (part: object) => {
  const choices = [{ index: 0, delta: { tool_calls: [{ index: 0, ...part }] }, finish_reason: null }]
  return event({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices })
}

describe('a stream that breaks off', () => {
  test.each([
    ['an empty event between its words', delta('word').repeat(50) + 'data: {}\n\n' + delta('word').repeat(50)],
    ['an event without choices after them', delta('word').repeat(100) + event({ id: 'c1', choices: [] })],
    [
      'the JSON around the arguments of a tool call',
      called({ function: { name: 'f' } }) + called({ function: { arguments: 'word' } }).repeat(99),
    ],
  ])('a broken stream costs its words, and nothing for %s', async (_name, events) => {
    const { gateway } = await gatewayTo((socket) => void socket.end(Buffer.concat([head, chunk(opening + events)])))
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream: true }))
    expect(await response.text()).toContain('"code":"upstream_failed"')
    expect(await recordOf(gateway, response)).toMatchObject({ basis: 'estimated', usage: { output: 100 } })
  })

  // The vendor counts only at the end, so that what they cost has to be estimated.
  test('a broken stream costs the images in its prompt', async () => {
    const { gateway } = await gatewayTo(
      (socket) => void socket.end(Buffer.concat([head, chunk(opening + delta('one'))])),
    )
    const url = `data:image/png;base64,${Buffer.alloc(30_000).toString('base64')}`
    const image = { type: 'image_url', image_url: { url } }
    const content = [{ type: 'text', text: 'Hello!' }, image, image]
    const messages = [{ role: 'user', content }]
    const response = await gateway.post('/v1/chat/completions', { model: 'm', stream: true, messages })
    expect(await response.text()).toContain('"code":"upstream_failed"')
    const { usage, cost } = await recordOf(gateway, response)
    expect(usage?.input).toBeGreaterThan(3_000)
    expect(usage?.input).toBeLessThan(3_100)
    expect(cost).toBe(nano(BigInt(usage?.input ?? 0) * 1_000n + 10_000n))
  })
})

// In some scripts a token is a character or two, also when the answer is translated for its client.
test.each([false, true])(
  'an answer without usage costs the same passed through or translated (streamed: %p)',
  async (stream) => {
    const said = '海上生明月，天涯共此时。'.repeat(10)
    const { gateway } = await gatewayTo((socket) => {
      if (stream) socket.end(Buffer.concat([head, chunk(opening + delta(said).repeat(3))]))
      else socket.end(answer(200, completion(said, { usage: undefined })))
    })
    const messages = [{ role: 'user', content: 'Hello!' }]
    const charged = async (path: string, body: object) => {
      const response = await gateway.post(path, { model: 'm', stream, ...body })
      await response.text()
      const { basis, usage } = await recordOf(gateway, response)
      expect(basis).toBe('estimated')
      return usage?.output ?? 0
    }
    const passed = await charged('/v1/chat/completions', { messages })
    expect(passed).toBeGreaterThan(80)
    for (const translated of [
      await charged('/v1/messages', { messages, max_tokens: 2_000 }),
      await charged('/v1/responses', { input: messages }),
    ])
      expect(Math.abs(translated - passed)).toBeLessThan(5) // an answer in one piece has a word or two around its own
  },
)

describe('a reader that does not read', () => {
  test('the vendor is paused while the client does not read, and goes on when it does', async () => {
    let sent = 0
    let sentLastAt = 0
    const { gateway, vendor } = await gatewayTo(async (socket) => {
      socket.write(streamHead)
      const events = chunk(opening + delta('x'.repeat(1_000)).repeat(64))
      let wake: (() => void) | undefined
      socket.on('drain', () => wake?.()).on('close', () => wake?.())
      while (!socket.destroyed) {
        sent += events.length
        sentLastAt = performance.now()
        if (!socket.write(events)) await new Promise<void>((resolve) => (wake = resolve))
      }
    })
    const client = await openSocket(gateway.url)
    client.on('error', () => {})
    client.pause()
    client.write(streamRequest(gateway))
    // At rest: the vendor has been unable to write for a while.
    await until(() => sent > 0 && performance.now() - sentLastAt > 300)
    const atRest = sent
    // The sockets' own buffers on the way hold some of this, our memory the rest; without a brake it would grow for
    // ever.
    expect(atRest).toBeLessThan(64 * mebibyte)

    let read = 0
    client.on('data', (bytes: Buffer) => (read += bytes.length))
    client.resume()
    await until(() => read > 4 * mebibyte && sent > atRest)

    client.destroy()
    await until(() => vendor.hangups === 1)
    await until(async () => (await lastRequestOf(gateway, gateway.accountId)) !== undefined)
    const record = await lastRequestOf(gateway, gateway.accountId)
    expect(record).toMatchObject({ status: 499, basis: 'estimated' })
    expect(record?.cost).toBeGreaterThan(0n)
  }, 120_000)
})

/** A vendor that goes on charging after a hang-up. None of those we know does, so the test brings its own. */
function withDrainingVendor(): () => void {
  const known = vendors as Map<string, Vendor>
  known.set('drainer', compatible({ id: 'drainer', baseUrl: '', hangup: 'drain' }))
  return () => known.delete('drainer')
}

const leave = async (gateway: TestGateway, after: (text: string) => boolean, more?: object) => {
  const client = await openSocket(gateway.url)
  let text = ''
  client.on('data', (bytes: Buffer) => (text += bytes.toString()))
  client.on('error', () => {})
  client.write(streamRequest(gateway, more))
  await until(() => text.includes('one') && after(text))
  client.destroy()
}

// Hidden reasoning is in the vendor's count alone: a client that leaves with the whole answer would have it for
// nothing.
test.each([
  ['compatible', 1],
  ['deepseek', 2],
])('%s is read to its usage when the client leaves after the ends of all %d choices', async (vendorId, n) => {
  const { promise: gone, resolve: go } = Promise.withResolvers<void>()
  const { gateway, vendor } = await gatewayTo(async (socket) => {
    socket.write(streamHead)
    socket.write(chunk(opening + delta('one') + finish))
    await gone
    // Slowly, so that the hang-up is noticed long before the end.
    for (let index = 0; index < 50; index++) {
      socket.write(chunk(': alive\n\n'))
      await new Promise((resolve) => setTimeout(resolve, 4))
    }
    socket.write(chunk(usageEvent(7, 520) + done))
    socket.write(lastChunk)
  }, vendorId)
  await leave(gateway, (text) => text.split('"finish_reason":"stop"').length > n, { n })
  go()
  await until(() => gateway.openHolds() === 0)
  expect(vendor.hangups).toBe(0)
  const record = await lastRequestOf(gateway, gateway.accountId)
  const usage = { input: 7 * n, output: 520 * n }
  expect(record).toMatchObject({ status: 499, basis: 'vendor', usage, cost: BigInt(n) * 5_207_000n })
})

describe('a vendor that goes on charging after a hang-up', () => {
  test('the stream is read to its usage, which is charged', async () => {
    const remove = withDrainingVendor()
    try {
      const { promise: gone, resolve: go } = Promise.withResolvers<void>()
      const { gateway, vendor } = await gatewayTo(async (socket) => {
        socket.write(streamHead)
        socket.write(chunk(opening + delta('one')))
        await gone
        // Slowly, so that the hang-up is noticed long before the end.
        for (let index = 0; index < 50; index++) {
          socket.write(chunk(delta(`word${index} `)))
          await new Promise((resolve) => setTimeout(resolve, 4))
        }
        socket.write(chunk(finish + usageEvent(7, 52) + done))
        socket.write(lastChunk)
      }, 'drainer')
      await leave(gateway, () => vendor.requests.length === 1)
      go()
      await until(() => gateway.openHolds() === 0)
      expect(vendor.hangups).toBe(0)
      const record = await lastRequestOf(gateway, gateway.accountId)
      expect(record).toMatchObject({ status: 499, basis: 'vendor', usage: { input: 7, output: 52 }, cost: 527_000n })
    } finally {
      remove()
    }
  })

  test('a stream that then breaks off is charged by what was read', async () => {
    const remove = withDrainingVendor()
    try {
      const { promise: gone, resolve: go } = Promise.withResolvers<void>()
      const { gateway } = await gatewayTo(async (socket) => {
        socket.write(streamHead)
        socket.write(chunk(opening + delta('one')))
        await gone
        socket.destroy()
      }, 'drainer')
      await leave(gateway, () => true)
      go()
      await until(() => gateway.openHolds() === 0)
      const record = await lastRequestOf(gateway, gateway.accountId)
      expect(record).toMatchObject({ basis: 'estimated' })
      expect(record?.cost).toBeGreaterThan(0n)
    } finally {
      remove()
    }
  })
})

test.each(['/v1/chat/completions', '/v1/messages'])(
  'a stream that ends without a word or a finish is an error on %s, and costs nothing',
  async (path) => {
    const { gateway } = await gatewayTo((socket) => void socket.write(stream(opening + usageEvent(10, 5) + done)))
    const response = await gateway.post(path, says('Hello!', { model: 'm', stream: true, max_tokens: 100 }))
    expect(await response.text()).toContain('ended the stream before it was finished')
    expect(await recordOf(gateway, response)).toMatchObject({ status: 502, basis: 'policy_zero', cost: 0n })
    expect(await attemptsOf(gateway, response)).toMatchObject([{ vendor_cost: 60_000n, delivered: false }])
  },
)

test.each(['', 'content-type: text/plain\r\n', 'content-type: Text/Event-Stream\r\ncontent-encoding: Identity\r\n'])(
  'a stream is read as one although its head says %j',
  async (lines) => {
    const begin = `HTTP/1.1 200 OK\r\n${lines}transfer-encoding: chunked\r\n\r\n`
    const events = opening + delta('word') + finish + usageEvent(10, 5) + done
    const { gateway } = await gatewayTo((socket) => void socket.write(begin + chunk(events).toString() + lastChunk))
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream: true }))
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    expect(await response.text()).toEndWith(done)
    expect(await recordOf(gateway, response)).toMatchObject({ status: 200, basis: 'vendor', cost: 60_000n })
  },
)

test('a stream that begins with an error about the request is answered as a bad request, and costs nothing', async () => {
  const error = { message: 'The prompt is too long.', type: 'invalid_request_error', code: 'context_length_exceeded' }
  const { gateway } = await gatewayTo((socket) => void socket.write(stream(event({ error }))))
  const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream: true }))
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error })
  expect(await recordOf(gateway, response)).toMatchObject({ status: 400, basis: 'policy_zero', cost: 0n })
})

test.each(['', 'content-type: text/plain\r\n'])(
  'an error in place of a stream keeps its status and message although its head says only %j',
  async (lines) => {
    const error = { message: 'The prompt is too long.', type: 'invalid_request_error', code: 'context_length_exceeded' }
    const body = JSON.stringify({ error })
    const head = `HTTP/1.1 200 OK\r\n${lines}content-length: ${body.length}\r\n\r\n`
    const { gateway } = await gatewayTo((socket) => void socket.write(head + body))
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream: true }))
    expect([response.status, await response.json()]).toEqual([400, { error: expect.objectContaining(error) }] as never)
    expect(await recordOf(gateway, response)).toMatchObject({ status: 400, cost: 0n })
  },
)

test.each(['application/json', 'text/html; charset=utf-8'])(
  'a stream that is declared as %s is read as one by what it begins with',
  async (type) => {
    const begin = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`
    const first = begin + chunk(': hold on\n\n').toString()
    const rest = chunk(opening + delta('word') + finish + usageEvent(10, 5) + done).toString() + lastChunk
    const { gateway } = await gatewayTo((socket) => void (socket.write(first), setImmediate(() => socket.write(rest))))
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream: true }))
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    expect(await response.text()).toEndWith(done)
    expect(await recordOf(gateway, response)).toMatchObject({ status: 200, basis: 'vendor', cost: 60_000n })
  },
)

test('an error in place of a stream keeps its status and message without a length and a type', async () => {
  const error = { message: 'The prompt is too long.', type: 'invalid_request_error', code: 'context_length_exceeded' }
  const body = chunk(`\n${JSON.stringify({ error })}`).toString() + lastChunk
  const { gateway } = await gatewayTo(
    (socket) => void socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body}`),
  )
  const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream: true }))
  expect([response.status, await response.json()]).toEqual([400, { error: expect.objectContaining(error) }] as never)
  expect(await recordOf(gateway, response)).toMatchObject({ status: 400, cost: 0n })
})

test('an answer with status 201 is delivered and charged, whole or streamed', async () => {
  const events = chunk(opening + delta('word') + finish + usageEvent(10, 5) + done).toString() + lastChunk
  const { gateway, vendor } = await gatewayTo((socket, { body }) => {
    const begun = streamHead.replace('200 OK', '201 Created')
    socket.write(body['stream'] === true ? begun + events : answer(201, completion('word')))
  })
  for (const stream of [false, true]) {
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream }))
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('word')])
    expect(await recordOf(gateway, response)).toMatchObject({ status: 200, basis: 'vendor' })
  }
  expect(vendor.requests).toHaveLength(2)
})

test('a whole answer in place of a stream becomes the stream in every protocol, and is charged', async () => {
  const { gateway } = await gatewayTo((socket, { call }) => {
    socket.write(answer(200, completion('word', call === 4 ? { usage: null } : {})))
  })
  const ask = says('Hello!', { model: 'm', stream: true })
  const chat = await gateway.post('/v1/chat/completions', { ...ask, stream_options: { include_usage: true } })
  const messages = await gateway.post('/v1/messages', { ...ask, max_tokens: 9 })
  const responses = await gateway.post('/v1/responses', { model: 'm', stream: true, input: 'Hello!' })
  const uncounted = await gateway.post('/v1/chat/completions', ask)
  for (const [response, basis, shown] of [
    [chat, 'vendor', /"content":"word".*"finish_reason":"stop".*"completion_tokens":5.*data: \[DONE\]\n\n$/s],
    [messages, 'vendor', /"text":"word".*"output_tokens":5.*event: message_stop\n/s],
    [responses, 'vendor', /"delta":"word".*event: response.completed\n.*"output_tokens":5/s],
    [uncounted, 'estimated', /"content":"word".*data: \[DONE\]\n\n$/s],
  ] as const) {
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    expect(await response.text()).toMatch(shown)
    const { cost, ...record } = await recordOf(gateway, response)
    expect(record).toMatchObject({ status: 200, basis, streamed: true })
    if (basis === 'vendor') expect(cost).toBe(nano(60_000n))
    expect(cost).toBeGreaterThan(0n)
  }
})

test.each([1, 2])('choices that take a call each are one stream, with %d of them whole', async (wholes) => {
  const choices = ['word', 'not asked for'].map((content) => ({ message: { content } }))
  const whole = answer(200, completion('', { choices }))
  const streamed = stream(opening + delta('word') + finish + usageEvent(10, 5) + done)
  const { gateway } = await gatewayTo((to, { call }) => void to.write(call <= wholes ? whole : streamed), 'deepseek')
  const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream: true, n: 2 }))
  const text = await response.text()
  for (const index of [0, 1]) expect(text).toMatch(new RegExp(`"index":${index},"delta":{[^}]*"content":"word"}`))
  expect([text.split('"finish_reason":"stop"').length, text.endsWith(done)]).toEqual([3, true])
  expect(await recordOf(gateway, response)).toMatchObject({ status: 200, basis: 'vendor', cost: nano(120_000n) })
})

const claudeSays = { type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Hi' }] }

test.each([
  ['has fewer choices than were asked for, and nothing in them', 'compatible', 2, completion(''), 'an empty answer'],
  ['is of a protocol whose servers stream', 'anthropic', 1, JSON.stringify(claudeSays), 'did not stream'],
])('a whole answer in place of a stream that %s is a 502 and costs nothing', async (_name, vendorId, n, body, said) => {
  const { gateway } = await gatewayTo((socket) => void socket.write(answer(200, body)), vendorId)
  const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm', stream: true, n }))
  expect([response.status, await response.text()]).toEqual([502, expect.stringContaining(said)])
  expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n, basis: 'policy_zero' })
})
