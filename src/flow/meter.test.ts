import { describe, expect, test } from 'bun:test'
import { until } from '../../test/support/gateway.ts'
import { atMeter, byHand, leg, metered, type AtMeter } from '../../test/support/metered.ts'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { GatewayError } from '../base/errors.ts'
import { nano } from '../base/money.ts'
import type { Usage } from '../capabilities/usage.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Leg } from './legs.ts'
import { StreamRelay, type Relay } from './relay.ts'

const piece = `data: ${'x'.repeat(40_000)}\n\n`
async function streamed(pieces: string[], marksBroken: boolean) {
  const facts = { ended: false, finished: true, failure: undefined }
  const stream = { facts, take: (event: Uint8Array) => event, closing: () => Buffer.from('done') }
  const relay = new StreamRelay(scriptedExchange(200, pieces), stream as never, {
    bytesMax: { event: 1024, stream: 64 * 1024 },
    leg,
    judge: (failure) => failure,
    complete() {},
  })
  await relay.begin()
  const { body, ended, seen } = metered(relay, { marksBroken })
  const text = await new Response(body).text().catch((thrown: unknown) => `broken: ${String(thrown)}`)
  await ended
  return { text: text.slice(-5), settled: seen.settled }
}

function hasNoPrice(): never {
  throw new Error('an image of that size has no price')
}

test('an answer without a price fails with a final error and is recorded as our loss', async () => {
  const legs = [{ attemptId: leg.attemptId, count: hasNoPrice }]
  const failed: AttemptRecord[] = []
  const answered = { kind: 'answered', body: Buffer.from('{}'), contentType: 'application/json', legs } as const
  const thrown = await thrownBy(Promise.resolve(atMeter().measure(answered, failed)))
  expect(thrown).toMatchObject({ kind: 'bug', details: { shouldRetry: false, cause: expect.any(Error) } })
  expect(failed).toMatchObject([{ id: 'att_1', status: 200, delivered: false }])
})

const lost = (id: string) => ({ id, status: 500, vendorCost: 0n, delivered: false }) as unknown as AttemptRecord
const legOf = (attemptId: string, usage: Usage | undefined): Leg => ({
  attemptId: attemptId as never,
  count: () => usage && { usage, basis: 'vendor' },
})
const wholeOf = (legs: readonly Leg[], failed: AttemptRecord[] = []) =>
  ({ kind: 'answered', body: Buffer.from('{}'), contentType: 'application/json', legs, failed }) as const

test('an answer is sold at its price with a record of every call, its cost and whether it was delivered', async () => {
  const { measure, sales } = atMeter()
  const legs = [legOf('att_1', { input: 3, output: 1 }), legOf('att_2', { output: 2 }), legOf('att_3', undefined)]
  expect(await measure(wholeOf(legs, [lost('att_again')]), [lost('att_0')])).toMatchObject({ cost: nano(12n) })
  expect(sales).toMatchObject([
    {
      status: 200,
      basis: 'estimated', // one of the legs has no count
      price: nano(12n),
      streamed: true,
      attempts: [
        { id: 'att_0', delivered: false },
        { id: 'att_again', delivered: false },
        { id: 'att_1', vendorCost: nano(4n), delivered: true },
        { id: 'att_2', vendorCost: nano(2n), delivered: true },
        { id: 'att_3', vendorCost: nano(0n), delivered: false },
      ],
    },
  ])
})

test('an answer that cannot be settled fails with a final error and records the cost of all its calls', async () => {
  const failed = [lost('att_0')]
  const answered = wholeOf([legOf('att_1', { input: 3 })], [lost('att_again')])
  const thrown = await thrownBy(Promise.resolve(atMeter({ settlesBroken: true }).measure(answered, failed)))
  expect(thrown).toMatchObject({ kind: 'overloaded', details: { shouldRetry: false } })
  const wasted = { id: 'att_1', status: 200, vendorCost: nano(3n), delivered: false }
  expect(failed).toMatchObject([{ id: 'att_0' }, { id: 'att_again' }, wasted])
})

test.each<[Usage, 'believed' | 'suspense']>([
  [{ input: 5, cachedInput: 5, cacheWrite: 5, cacheWriteHour: 5, output: 40 }, 'believed'],
  [{ input: 21 }, 'suspense'],
  [{ cachedInput: 21 }, 'suspense'],
  [{ cacheWrite: 20, cacheWriteHour: 1 }, 'suspense'],
  [{ input: 10, imageInput: 5, audioInput: 5 }, 'believed'],
  [{ input: 10, imageInput: 6, audioInput: 5 }, 'suspense'],
  [{ input: 1, output: 41 }, 'suspense'],
  [{ output: 10, imageOutput: 10, audioOutput: 20 }, 'believed'],
  [{ audioOutput: 41 }, 'suspense'],
  [{ imageOutput: 41 }, 'suspense'],
])('for a model that takes 10 tokens in and 20 out, usage of %j is %s', async (usage, outcome) => {
  const { measure, sales } = atMeter({ believable: { input: 10, output: 20 } })
  await measure(wholeOf([legOf('att_1', usage)]), [])
  expect(sales[0]?.excessTo ?? 'believed').toBe(outcome)
})

test.each<[string, string[], boolean]>([
  ['a stream is settled once', [piece, piece], false],
  ['a mark that cannot be written in the second piece ends the stream and its hold', ['data: a\n\n', piece], true],
  ['a mark that cannot be written in the first piece ends the stream and its hold', [piece], true],
])('%s', async (_name, pieces, marksBroken) => {
  expect(await streamed(pieces, marksBroken)).toMatchObject({ settled: 1 })
})

test('the delivery of a quiet stream is marked once after two seconds, and never after its end', async () => {
  const { relay, give, end } = byHand()
  const { body, seen, pass } = metered(relay)
  const reader = body.getReader()
  void reader.read()
  pass(0)
  give('a')
  pass(1_900)
  expect(seen.marked).toBe(0)
  pass(200)
  expect(seen.marked).toBe(1)
  pass(10_000)
  expect(seen.marked).toBe(1) // nothing came since
  give('b')
  end()
  pass(10_000)
  expect(seen).toEqual({ marked: 1, settled: 1 })
})

test('a quiet stream sends keep-alives, which are not marked as deliveries', async () => {
  const { relay, give, end } = byHand()
  const { body, seen, pass } = metered(relay)
  let text = ''
  const whole = body.pipeTo(new WritableStream({ write: (bytes: Uint8Array) => void (text += Buffer.from(bytes)) }))
  const said = async (words: string) => {
    await until(() => text.includes(words))
    const heard = text
    text = ''
    return heard
  }
  await until(() => {
    give('a')
    return text !== ''
  })
  pass(2_100)
  expect([await said('a'), seen.marked]).toEqual([expect.stringMatching(/^a+$/), 1])
  pass(14_700)
  expect(text).toBe('')
  pass(300)
  expect(await said('alive')).toBe('alive')
  pass(15_100)
  expect(await said('alive')).toBe('alive')
  // Every delivery puts the keep-alive off again.
  pass(14_000)
  give('b')
  pass(2_100)
  expect(await said('b')).toBe('b')
  pass(14_700)
  expect(text).toBe('')
  expect(seen.marked).toBe(2)
  end()
  pass(60_000)
  await whole
  expect([text, seen.settled]).toEqual(['done', 1])
})

test('a mark that is due and cannot be written ends the stream and its hold', async () => {
  const { relay, give } = byHand()
  const { body, seen, pass, ended } = metered(relay, { marksBroken: true })
  const reader = body.getReader()
  const first = reader.read()
  pass(0)
  give('a')
  await first
  pass(2_100)
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('error')
  await ended
  expect(seen.settled).toBe(1)
})

test('bytes that arrive after the reader left are not marked', async () => {
  const { relay, give } = byHand()
  const { body, seen, pass, ended } = metered(relay)
  const reader = body.getReader()
  void reader.read()
  pass(0)
  give('a')
  await reader.cancel()
  await ended
  give('b'.repeat(40_000))
  pass(2_100)
  expect(seen).toEqual({ marked: 0, settled: 1 })
})

/** A stream whose reader leaves, and what was done to the call behind it. */
async function left(options: AtMeter, more: Partial<Relay> = {}) {
  const { relay, give, end } = byHand()
  const done: string[] = []
  const watched = { left: () => void done.push('left'), abort: () => void done.push('aborted') }
  const { body, ended, pass, ...rest } = metered({ ...relay, ...more, ...watched }, options, [lost('att_0')])
  const reader = body.getReader()
  void reader.read()
  pass(0)
  give('a')
  await reader.cancel()
  // A drain hears of the end; a stream that was stopped does not listen any more.
  end()
  await ended
  return { done, ...rest }
}

describe('a stream whose reader leaves', () => {
  test('the call is aborted if the vendor then stops charging, and otherwise drained', async () => {
    expect((await left({ hangup: 'stop' })).done).toEqual(['left', 'aborted'])
    expect((await left({ hangup: 'drain' })).done).toEqual(['left'])
    expect((await left({ hangup: 'stop' }, { isUncounted: true })).done).toEqual(['left'])
  })

  test('the customer pays for what was delivered, and every failed call is on record', async () => {
    const { sales } = await left({}, { failed: [lost('att_again')] })
    expect(sales).toMatchObject([
      { status: 499, price: nano(4n), attempts: [{ id: 'att_0' }, { id: 'att_again' }, { id: 'att_1' }] },
    ])
  })

  test('the hold is released when nothing was delivered, and the call is on record', async () => {
    const { sales, releases } = await left({}, { legs: [legOf('att_1', undefined)] })
    expect(sales).toEqual([])
    expect(releases).toMatchObject([{ status: 499, attempts: [{ id: 'att_0' }, { id: 'att_1', delivered: false }] }])
  })
})

test('a stream that cannot be settled ends with an error, and its hold is released with our cost', async () => {
  const { relay, give, end } = byHand()
  const { body, ended, releases } = metered(relay, { settlesBroken: true })
  const text = new Response(body).text()
  give('a')
  end()
  expect(await text).toBe('aerror')
  await ended
  expect(releases).toMatchObject([{ attempts: [{ id: 'att_1', vendorCost: nano(2n), delivered: false }] }])
})

test('a broken stream is cut off when its protocol has no error event', async () => {
  const { relay, give, fail } = byHand()
  const { body, ended } = metered(relay, { isWordless: true })
  const text = new Response(body).text()
  give('a')
  fail(new GatewayError('upstream-failed', 'broken off'))
  await ended
  expect(await text.catch(() => 'cut off')).toBe('cut off')
})

test.each([
  ['the vendor breaks off', 'upstream-failed', 502],
  ['the vendor leaves waiting for too long', 'upstream-timeout', 504],
  ['a stop of the gateway ends', 'overloaded', 503],
] as const)('a stream that %s is recorded as such, and its call is aborted', async (_how, kind, status) => {
  const { relay, give, fail } = byHand()
  let aborted = 0
  const { body, ended, sales } = metered({ ...relay, abort: () => void aborted++ })
  const text = new Response(body).text()
  give('a')
  fail(new GatewayError(kind, 'broken off'))
  expect(await text).toBe('aerror')
  await ended
  expect([aborted, sales.map((sale) => sale.status)]).toEqual([1, [status]])
})

test('a stream that cannot be priced ends with an error, and its hold is ended', async () => {
  const { relay, give, end } = byHand()
  const { body, seen, ended } = metered({ ...relay, legs: [{ ...leg, count: hasNoPrice }] })
  const text = new Response(body).text()
  give('a')
  end()
  expect(await text).toEndWith('error')
  await ended
  expect(seen.settled).toBe(1)
})
