import { expect, test } from 'bun:test'
import { World } from '../../test/simulation/world.ts'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import { Deadlines } from '../base/deadlines.ts'
import { silentLog } from '../base/log.ts'
import type { Outlet } from '../base/pour.ts'
import { Drains } from './drains.ts'
import { makeMeter } from './meter.ts'
import { StreamRelay, type Relay } from './relay.ts'

const piece = `data: ${'x'.repeat(40_000)}\n\n`
const leg = {
  attemptId: 'att_1' as never,
  count: () => ({ usage: { input: 1, output: 1 }, basis: 'estimated' as const }),
}

/** One stream's way through the meter: what its reader gets, and how often its hold was marked and ended. */
function metered(relay: Relay, { marksBroken = false } = {}) {
  const world = new World(1)
  const seen = { marked: 0, settled: 0 }
  const routed = {
    requestId: 'req_1',
    attemptId: 'att_1',
    signal: new AbortController().signal,
    route: { channel: { id: 'c', vendor: { id: 'v', hangup: 'stop' } }, upstreamModel: 'm' },
    model: { prices: { rates: {}, tiers: [] }, costs: { rates: {}, tiers: [] } },
    ask: { stream: true },
    errand: { writeStreamError: () => Buffer.from('error') },
    elapsedMs: () => 0,
    funds: {
      mark() {
        if (marksBroken) throw new Error('EIO')
        seen.marked++
      },
      settle: async () => {
        seen.settled++
        return 0n
      },
      release: async () => {
        seen.settled++
      },
    },
  }
  const timeouts = { readerMs: 1_000, totalMs: 60_000 }
  const meter = makeMeter({
    log: silentLog,
    drains: new Drains(),
    deadlines: new Deadlines(world.clock, world),
    timeouts,
  })
  const answer = meter(routed as never, { kind: 'streaming', relay, contentType: 'text/event-stream' }, []) as {
    body: ReadableStream
    ended: Promise<string>
  }
  return { ...answer, seen, pass: (ms: number) => world.run(world.now + ms) }
}

async function streamed(pieces: string[], marksBroken: boolean) {
  const facts = { ended: false, finished: true, failure: undefined }
  const stream = { facts, take: (event: Uint8Array) => event, closing: () => Buffer.from('done') }
  const relay = new StreamRelay(scriptedExchange(200, pieces), stream as never, {
    outputTokensMax: 1000,
    leg,
    discreet: (failure) => failure,
  })
  await relay.begin()
  const { body, ended, seen } = metered(relay, { marksBroken })
  const text = await new Response(body).text().catch((thrown: unknown) => `broken: ${String(thrown)}`)
  return { text: text.slice(-5), settled: seen.settled, ended: await ended }
}

test('a stream is settled once', async () => {
  expect(await streamed([piece, piece], false)).toMatchObject({ settled: 1, ended: 'charged' })
})
test('a mark that cannot be written in the second piece ends the stream and its hold', async () => {
  expect(await streamed(['data: a\n\n', piece], true)).toMatchObject({ settled: 1, ended: 'charged' })
})
test('a mark that cannot be written in the first piece ends the stream and its hold', async () => {
  expect(await streamed([piece], true)).toMatchObject({ settled: 1, ended: 'charged' })
})

/** A stream in the hands of a test. */
function byHand() {
  let outlet: Outlet | undefined
  const relay: Relay = {
    legs: [leg],
    pour: (to) => void (outlet = to),
    hold() {},
    closing: () => Buffer.from('done'),
    abort() {},
  }
  return { relay, give: (text: string) => outlet?.take(Buffer.from(text)), end: () => outlet?.end() }
}

test('what a quiet stream has delivered is marked after two seconds, once, and never after its end', async () => {
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

test('a mark that is due and cannot be made ends the stream and its hold', async () => {
  const { relay, give } = byHand()
  const { body, seen, pass, ended } = metered(relay, { marksBroken: true })
  const reader = body.getReader()
  const first = reader.read()
  pass(0)
  give('a')
  await first
  pass(2_100)
  expect(Buffer.from((await reader.read()).value).toString()).toBe('error')
  expect([await ended, seen.settled]).toEqual(['charged', 1])
})

test('what comes after the reader left is not marked', async () => {
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

const unpriced = (): never => {
  throw new Error('there is no price for this size')
}

test('what cannot be priced is released, not left open', async () => {
  const { relay, give, end } = byHand()
  const { body, seen, ended } = metered({ ...relay, legs: [{ ...leg, count: unpriced }] })
  const text = new Response(body).text()
  give('a')
  end()
  expect(await text).toEndWith('error')
  expect([await ended, seen.settled]).toEqual(['charged', 1])
})
