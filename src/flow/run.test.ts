import { describe, expect, test } from 'bun:test'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import { systemClock } from '../base/clock.ts'
import { Deadlines } from '../base/deadlines.ts'
import { GatewayError } from '../base/errors.ts'
import { streamOf } from '../base/http/pushed-body.ts'
import { newRequestId } from '../base/ids.ts'
import { silentLog } from '../base/log.ts'
import { nano, pico } from '../base/money.ts'
import type { Ending, Hold, Sale } from '../billing/billing.ts'
import type { PriceList } from '../capabilities/usage.ts'
import type { Model } from '../catalogue/model.ts'
import { makeChannels, type Channel } from '../upstream/channels.ts'
import { nobodyServes } from '../upstream/nobody-serves.ts'
import type { Exchange, Sent, Transport } from '../upstream/transport.ts'
import { compatible } from '../vendors/compatible/compatible.ts'
import { openaiChat } from '../wire/openai/chat.ts'
import { chatJob } from './chat/chat.ts'
import { makeAdmit } from './admit.ts'
import { makeCall } from './call.ts'
import { Drains } from './drains.ts'
import { makeMeter } from './meter.ts'
import { makeRelease } from './release.ts'
import { makeRoute } from './route.ts'
import { run, type Line } from './run.ts'
import type { Received } from './stages.ts'

/** What a channel does when it is called; `leave` is the client hanging up. */
type Behaviour = (leave: () => void) => Promise<Sent>

const prices: PriceList = {
  version: 'v',
  rates: { input: pico(1_000_000n), output: pico(10_000_000n) },
  tiers: [],
  perImage: {},
  perSecond: {},
  perVideo: {},
  perVideoToken: {},
}
const model: Model = {
  id: 'm',
  capabilities: ['chat'],
  vendor: 'v',
  created: 0,
  offers: [{ vendor: 'v', upstreamModel: 'theirs' }],
  contextTokens: 1_000,
  outputTokensMax: 100,
  choicesMax: 4,
  reasoning: false,
  efforts: [],
  rules: [],
  prices,
  costs: prices,
  confidence: 'listed',
  source: 'a test',
}

const sent = (exchange: Exchange): Sent => ({ kind: 'response', exchange })
const event = (json: unknown) => `data: ${JSON.stringify(json)}\n\n`
const word = event({ model: 'm', choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: null }] })
const finish = event({ model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const usage = { prompt_tokens: 7, completion_tokens: 2 }
const counted = event({ choices: [], usage })
const done = 'data: [DONE]\n\n'
const cut = new GatewayError('upstream-failed', 'cut')

const whole = JSON.stringify({ model: 'm', choices: [{ message: { content: 'Hi' } }], usage })
const streams =
  (...chunks: readonly (string | Error)[]): Behaviour =>
  async () =>
    sent(scriptedExchange(200, chunks, 'text/event-stream'))
const says =
  (status: number, body: string): Behaviour =>
  async () =>
    sent(scriptedExchange(status, [body], 'application/json'))
const breaks =
  (delivery: 'unsent' | 'closed' | 'unknown', error = cut): Behaviour =>
  async () => ({ kind: 'failed', error, delivery })

const answers = says(200, whole)
const breaksUs = streams('{', new TypeError('ours'))
const fails = says(500, '{"error":{"message":"no"}}')
const refuses = says(400, '{"error":{"message":"bad"}}')
const hangsUp: Behaviour = async (leave) => {
  leave()
  return breaks('unknown', new GatewayError('client-gone', 'gone'))(leave)
}

/** One channel that does something else at every call. */
const inTurn = (...behaviours: readonly Behaviour[]): Behaviour => {
  let calls = 0
  return (leave) => (behaviours[calls++] ?? fails)(leave)
}

/** One request over these channels, read to its end; what became of its hold, and how often a vendor was called. */
async function walk(
  channels: readonly Behaviour[],
  options: {
    stream?: boolean
    readBytes?: number
    settleFails?: boolean
    sendingFails?: (attempts: number) => boolean
    sideBySide?: number
  } = {},
) {
  const endings: string[] = []
  const sales: Sale[] = []
  const losses: Ending[] = []
  const totalsMs: number[] = []
  let announced = 0
  let attempts = 0
  let placesLeft = 0
  const client = new AbortController()
  const hold: Hold = {
    sending() {
      if (options.sendingFails?.(++announced)) throw new GatewayError('overloaded', 'the disk is full')
    },
    mark() {},
    async settle(sale) {
      if (options.settleFails) throw new Error('the ledger is gone')
      endings.push('settled')
      sales.push(sale)
      return sale.price
    },
    async release(ending) {
      if (endings.length > 0) return
      endings.push('released')
      losses.push(ending)
    },
  }
  const vendor = compatible({ id: 'v', baseUrl: 'https://v', choicesMax: 1 })
  const all = channels.map((_, index): Channel => ({
    id: `c${index}`,
    vendor,
    baseUrl: `https://v${index}`,
    credentials: ['k'],
    weight: 1,
    priority: index,
  }))
  const offering = makeChannels(all, systemClock, () => 0)
  const transport: Transport = {
    async send(call, { totalMs }) {
      attempts++
      totalsMs.push(totalMs)
      const behaviour = channels[Number(/^https:\/\/v(\d+)/.exec(call.url)?.[1])]
      if (behaviour === undefined) throw new Error(`nobody at ${call.url}`)
      return behaviour(() => client.abort())
    },
  }
  const times = { connectMs: 1, firstByteMs: 1, idleMs: 1, totalMs: 60_000 }
  const parts: Line = {
    authenticate: async () => ({ accountId: 'a', keyId: 'k', limits: null, caps: [], mayUse: () => true }),
    limit: async () => ({ spend: async () => {}, leave: () => placesLeft++ }),
    once: (_limited, go) => go(),
    admit: makeAdmit({
      models: () => new Map([['m', model]]),
      billing: { take: async () => ({ kind: 'hold', hold }) },
      totalMs: 1,
    }),
    route: makeRoute({ channels: () => offering, clock: systemClock, attemptsMax: 3 }),
    noRoute: ({ ask: { model }, model: { offers } }, passedOver) =>
      nobodyServes(offering, { model, offers, isServedBy: () => true }, passedOver),
    call: makeCall({
      transport,
      channels: () => offering,
      timeouts: { stream: times, whole: times },
      tenantLabel: (text) => text,
      fetchLink: () => Promise.reject(new Error('a chat links to nothing')),
      stopping: new AbortController().signal,
      log: silentLog,
    }),
    meter: makeMeter({
      log: silentLog,
      drains: new Drains(),
      deadlines: new Deadlines(systemClock),
      timeouts: { readerMs: 60_000, totalMs: 60_000, quietMs: 15_000 },
    }),
    release: makeRelease(silentLog, { failed() {} }),
  }
  const { sideBySide = 1, stream = false } = options
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], n: sideBySide, stream }
  const received: Received = {
    requestId: newRequestId(),
    job: chatJob(openaiChat),
    credential: 'sk-x',
    address: () => '127.0.0.1',
    client: { letGo() {}, unreadBytes: () => Promise.resolve(undefined) },
    markVendorCalled() {},
    signal: client.signal,
    receivedAt: 0,
    elapsedMs: () => attempts * 10_000,
    path: '/v1/chat/completions',
    idempotencyKey: undefined,
    setHeader() {},
    header: () => null,
    readBody: async () => ({ body, files: [], canonicalBytes: Buffer.from(JSON.stringify(body)), bytes: 100 }),
  }
  let [text, mayTryAgain] = ['', true]
  let error: string | undefined
  try {
    const answer = await run(parts, received)
    if (answer.kind === 'whole') text = Buffer.from(answer.body).toString()
    else text = await readStream(streamOf(answer.body), options.readBytes ?? Infinity)
  } catch (thrown) {
    error = thrown instanceof GatewayError ? thrown.kind : String(thrown)
    mayTryAgain = !(thrown instanceof GatewayError) || thrown.details.shouldRetry !== false
  }
  // Settling after the client has left is awaited by no caller, so it gets some turns of the loop.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  return { endings, sales, losses, totalsMs, attempts, text, error, mayTryAgain, placesLeft }
}

async function readStream(body: ReadableStream<Uint8Array>, bytes: number): Promise<string> {
  const reader = body.getReader()
  let text = ''
  while (text.length < bytes) {
    const { done: isDone, value } = await reader.read()
    if (isDone) return text
    text += Buffer.from(value).toString()
  }
  await reader.cancel()
  return text
}

// Whatever happens upstream, a hold ends exactly once: settled when something was delivered, released when not, and
// with a final error where the vendor may charge.
describe('each outcome of a request ends its hold exactly once', () => {
  test.each([
    { name: 'the first channel answers', channels: [answers], hold: 'settled', tried: 1 },
    { name: 'the first channel fails and the second answers', channels: [fails, answers], hold: 'settled', tried: 2 },
    { name: 'every channel fails', channels: [fails, fails], hold: 'released', tried: 2 },
    { name: 'a channel refuses and no other is tried', channels: [refuses, answers], hold: 'released', tried: 1 },
    { name: 'the model has no channel', channels: [], hold: 'released', tried: 0 },
    { name: 'the client leaves before the first byte', channels: [hangsUp, answers], hold: 'final', tried: 1 },
    { name: 'a vendor cannot be reached', channels: [breaks('unsent'), answers], hold: 'settled', tried: 2 },
    { name: 'a vendor may have done the work', channels: [breaks('unknown'), answers], hold: 'final', tried: 1 },
    { name: 'the only channel closes every connection', channels: [breaks('closed')], hold: 'released', tried: 2 },
    { name: 'every allowed attempt fails', channels: [fails, fails, fails, answers], hold: 'released', tried: 3 },
    { name: 'an answer is not JSON', channels: [says(200, '<html>'), answers], hold: 'final', tried: 1 },
    { name: 'an answer breaks off', channels: [streams('{"ch', cut), answers], hold: 'final', tried: 1 },
    { name: 'reading an answer throws an unexpected error', channels: [breaksUs, answers], hold: 'final', tried: 1 },
  ])('the hold ends once when $name', async ({ channels, hold, tried }) => {
    const { endings, attempts, placesLeft, mayTryAgain } = await walk(channels)
    expect([endings, mayTryAgain]).toEqual(hold === 'final' ? [['released'], false] : [[hold], true])
    expect(attempts).toBe(tried)
    expect(placesLeft).toBeGreaterThanOrEqual(1)
  })

  test.each([
    {
      name: 'with usage',
      chunks: [word + finish + counted + done],
      hold: 'settled',
      basis: 'vendor',
      ends: 'done',
    },
    { name: 'without usage', chunks: [word, finish, done], hold: 'settled', basis: 'estimated', ends: 'done' },
    { name: 'without a final [DONE]', chunks: [word, finish], hold: 'settled', basis: 'estimated', ends: 'done' },
    { name: 'cut after a word', chunks: [word, cut], hold: 'settled', basis: 'estimated', ends: 'error' },
    { name: 'that ends after a word', chunks: [word], hold: 'settled', basis: 'estimated', ends: 'error' },
    {
      name: 'with an error event after a word',
      chunks: [word, event({ error: { message: 'x' } })],
      hold: 'settled',
      basis: 'estimated',
      ends: 'error',
    },
    {
      name: 'that finishes without a word',
      chunks: [finish, counted, done],
      hold: 'settled',
      basis: 'vendor',
      ends: 'done',
    },
    { name: 'cut before a word', chunks: [cut], hold: 'released', basis: undefined, ends: 'refusal' },
    {
      name: 'with an error event before a word',
      chunks: [event({ error: { message: 'x' } })],
      hold: 'released',
      basis: undefined,
      ends: 'refusal',
    },
    { name: 'without any event', chunks: [], hold: 'released', basis: undefined, ends: 'refusal' },
  ])('the hold of a stream $name ends once', async ({ chunks, hold, basis, ends }) => {
    const { endings, sales, text, error } = await walk([streams(...chunks)], { stream: true })
    expect(endings).toEqual([hold])
    expect(sales[0]?.basis).toBe(basis as Sale['basis'])
    expect({ done: text.endsWith(done), error: text.includes('"error"'), refusal: error !== undefined }).toEqual({
      done: ends === 'done',
      error: ends === 'error',
      refusal: ends === 'refusal',
    })
  })

  test('a stream whose client leaves after a word is settled by an estimate', async () => {
    const { endings, sales } = await walk([streams(word, word, word, finish, counted, done)], {
      stream: true,
      readBytes: 1,
    })
    expect(endings).toEqual(['settled'])
    expect(sales[0]).toMatchObject({ basis: 'estimated', status: 499 })
  })
})

test('failed attempts are recorded beside the delivered one, and only that one is charged', async () => {
  const { sales } = await walk([fails, breaks('unsent'), answers])
  const [sale] = sales
  expect(sale?.attempts.map(({ channel, status, delivered }) => ({ channel, status, delivered }))).toEqual([
    { channel: 'c0', status: 500, delivered: false },
    { channel: 'c1', status: 0, delivered: false },
    { channel: 'c2', status: 200, delivered: true },
  ])
  // 7 tokens in at a micro-dollar, 2 out at ten.
  expect(sale?.price).toBe(nano(27_000n))
})

test('the total timeout of a request is shared by all its attempts', async () => {
  const { totalsMs } = await walk([fails, breaks('unsent'), answers])
  expect(totalsMs).toEqual([60_000, 50_000, 40_000])
})

test('an answer that cannot be settled is not delivered, and its cost is recorded as our loss', async () => {
  const loss = [{ vendorCost: nano(27_000n), delivered: false }]
  const plain = await walk([answers], { settleFails: true })
  expect(plain).toMatchObject({ error: 'overloaded', text: '', endings: ['released'], losses: [{ attempts: loss }] })
  for (const vendor of [streams(word + finish + counted + done), answers]) {
    const streamed = await walk([vendor], { stream: true, settleFails: true })
    expect(streamed).toMatchObject({ endings: ['released'], losses: [{ attempts: loss }] })
    expect(streamed.text).toContain('"error"')
    expect(streamed.text).not.toContain('[DONE]')
  }
})

describe('several choices from a vendor that gives one per call', () => {
  test('choices are merged by index, and each call is paid for', async () => {
    const { endings, sales, attempts, text } = await walk([answers], { sideBySide: 2 })
    expect(endings).toEqual(['settled'])
    expect(attempts).toBe(2)
    const { choices, usage: shown } = JSON.parse(text) as { choices: { index: number }[]; usage: unknown }
    expect(choices.map(({ index }) => index)).toEqual([0, 1])
    expect(shown).toMatchObject({ prompt_tokens: 14, completion_tokens: 4 })
    expect(sales[0]?.price).toBe(nano(54_000n))
    expect(sales[0]?.attempts.map(({ vendorCost, delivered }) => ({ vendorCost, delivered }))).toEqual([
      { vendorCost: nano(27_000n), delivered: true },
      { vendorCost: nano(27_000n), delivered: true },
    ])
  })

  test('a failed choice fails them all, and another channel is tried only if none was paid for', async () => {
    const { endings, attempts, error } = await walk([inTurn(answers, refuses)], { sideBySide: 2 })
    expect({ endings, attempts, error }).toEqual({ endings: ['released'], attempts: 2, error: 'upstream-rejected' })
    // One of the choices has been paid for: trying elsewhere would mean paying for it again.
    const paid = await walk([inTurn(answers, fails), answers], { sideBySide: 2 })
    expect(paid).toMatchObject({ endings: ['released'], attempts: 2, error: 'upstream-failed' })
    const unpaid = await walk([fails, answers], { sideBySide: 2 })
    expect(unpaid).toMatchObject({ endings: ['settled'], attempts: 4 })
  })

  test('the cost of one choice is recorded when the other could not be sent', async () => {
    const { losses, error } = await walk([answers], { sideBySide: 2, sendingFails: (attempts) => attempts === 2 })
    expect(error).toBe('overloaded')
    expect(losses.map(({ attempts }) => attempts.map(({ vendorCost }) => vendorCost))).toEqual([[nano(27_000n)]])
  })

  test('streamed choices are merged into one stream with one end', async () => {
    const whole = streams(word + finish + counted + done)
    const { endings, sales, text } = await walk([whole], { stream: true, sideBySide: 3 })
    expect(endings).toEqual(['settled'])
    expect(sales[0]).toMatchObject({ basis: 'vendor', usage: { input: 21, output: 6 } })
    for (const index of [0, 1, 2]) {
      expect(text.split(`"index":${index},"delta":{"role":"assistant"`)).toHaveLength(2)
      expect(text).toMatch(new RegExp(`"index":${index},"delta":{[^}]*"content":"Hi"}`))
    }
    expect(text.split('[DONE]')).toHaveLength(2)
  })

  test('a choice that is cut ends the whole stream, and what was delivered is charged', async () => {
    const { endings, sales, text } = await walk(
      [inTurn(streams(word, word, finish, counted, done), streams(word, cut))],
      {
        stream: true,
        sideBySide: 2,
      },
    )
    expect(endings).toEqual(['settled'])
    expect(sales[0]).toMatchObject({ basis: 'estimated', status: 502 })
    expect(text).toContain('"error"')
    expect(text).not.toContain('[DONE]')
  })

  test('a client that leaves in the middle is charged for what was delivered', async () => {
    const { endings, sales } = await walk([streams(word, word, word, finish, counted, done)], {
      stream: true,
      sideBySide: 2,
      readBytes: 1,
    })
    expect(endings).toEqual(['settled'])
    expect(sales[0]).toMatchObject({ basis: 'estimated', status: 499 })
  })
})
