import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import type { Outlet } from '../base/pour.ts'
import { wholeOf, type Bytes } from '../base/spliced.ts'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import type { ChatStream } from '../capabilities/chat.ts'
import type { Exchange } from '../upstream/transport.ts'
import { MergedRelay } from './chat/merged-relay.ts'
import { StreamRelay } from './relay.ts'

/** A vendor's response in the hands of a test, and all that it is told. */
function vendor() {
  const told: string[] = []
  let outlet: Outlet | undefined
  const exchange = {
    pour: (to: Outlet) => {
      told.push('pour')
      outlet = to
    },
    pause: () => {
      told.push('hold')
      outlet = undefined
    },
    finish: () => {
      told.push('finish')
      outlet = undefined
    },
    abort: () => {
      told.push('abort')
      const cut = outlet
      outlet = undefined
      cut?.end(new GatewayError('client-gone', 'ended'))
    },
  } as unknown as Exchange
  const give = (...events: string[]) => outlet?.take(Buffer.from(events.map((event) => `data: ${event}\n\n`).join('')))
  return {
    exchange,
    told,
    give,
    part: (text: string) => outlet?.take(Buffer.from(text)),
    end: (failure?: GatewayError) => outlet?.end(failure),
    isPoured: () => outlet !== undefined,
  }
}

/** `last` ends the stream; `bad` is not a valid event; `held` is not shown. */
function relayOf({ exchange }: ReturnType<typeof vendor>, more: Partial<ChatStream> = {}): StreamRelay {
  const facts = { ended: false, finished: false, failure: undefined, outputEvents: 1 }
  const stream = {
    facts,
    take(event: Uint8Array) {
      const text = Buffer.from(event).toString()
      if (text.includes('bad')) throw new GatewayError('upstream-failed', 'malformed')
      facts.ended ||= text.includes('last')
      return text.includes('held') ? undefined : Buffer.from(text.slice(6, -2))
    },
    closing: () => new Uint8Array(),
    ...more,
  }
  const leg = { attemptId: 'att_1' as never, count: () => undefined }
  return new StreamRelay(exchange, stream as never, {
    bytesMax: { event: 1024, stream: 64 * 1024 },
    leg,
    judge: (failure) => failure,
    complete() {},
  })
}

function noting(withEach: () => void = () => {}) {
  const noted: string[] = []
  const outlet: Outlet<Bytes> = {
    take(bytes) {
      noted.push(Buffer.from(wholeOf(bytes)).toString())
      withEach()
    },
    end: (failure) => void noted.push(failure?.kind ?? 'end'),
  }
  return { noted, outlet }
}

describe('the relay of one stream', () => {
  test('the rest of the response is still read when the reader is full at the last event', () => {
    const from = vendor()
    const relay = relayOf(from)
    const { noted, outlet } = noting(() => relay.pause())
    relay.pour(outlet)
    from.give('a', 'last')
    expect(from.told).toEqual(['pour', 'finish'])
    expect(noted).toEqual(['alast'])
    relay.pour(outlet)
    expect(noted).toEqual(['alast', 'end'])
  })

  test('what comes behind the last event in the same read is not shown', () => {
    const from = vendor()
    const { noted, outlet } = noting()
    relayOf(from).pour(outlet)
    from.give('a', 'last', 'b')
    expect([noted, from.told]).toEqual([
      ['alast', 'end'],
      ['pour', 'finish'],
    ])
  })

  test('a read of which nothing is shown is not passed on', () => {
    const from = vendor()
    const { noted, outlet } = noting()
    relayOf(from).pour(outlet)
    from.give('held', 'held')
    from.give('held')
    expect(noted).toEqual([])
    from.give('held', 'a')
    expect(noted).toEqual(['a'])
  })

  test('a read is taken as a usual event only where an event begins, and otherwise event by event', () => {
    const from = vendor()
    const { noted, outlet } = noting()
    const tried: string[] = []
    const takeUsual = (bytes: Uint8Array) => {
      tried.push(Buffer.from(bytes).toString())
      return bytes.length === 9 ? Buffer.from('usual ') : undefined
    }
    relayOf(from, { takeUsual }).pour(outlet)
    from.give('a')
    from.give('b', 'c')
    from.part('data: d')
    from.part('data: x\n\n')
    from.give('e')
    expect(noted).toEqual(['usual ', 'bc', 'ddata: x', 'usual '])
    expect(tried).toEqual(['data: a\n\n', 'data: b\n\ndata: c\n\n', 'data: d', 'data: e\n\n'])
  })

  test('the vendor is paused when the reader is full at the first event', async () => {
    const from = vendor()
    const relay = relayOf(from)
    const begun = relay.begin()
    from.give('a')
    await begun
    expect(from.told).toEqual(['pour', 'hold'])
    relay.pour(noting(() => relay.pause()).outlet)
    expect(from.isPoured()).toBe(false)
  })

  test('a vendor that sends more than a whole stream may have is cut off, however short its events', () => {
    const from = vendor()
    const { noted, outlet } = noting()
    relayOf(from).pour(outlet)
    const event = 'x'.repeat(1_000)
    for (let sent = 0; sent < 65; sent++) from.give(event)
    expect(from.told).toEqual(['pour'])
    from.give(event)
    expect(from.told).toEqual(['pour', 'abort'])
    expect(noted.slice(64)).toEqual([event, 'upstream-failed'])
  })

  test('a malformed event aborts the call and ends the stream once', () => {
    const from = vendor()
    const relay = relayOf(from)
    const { noted, outlet } = noting()
    relay.pour(outlet)
    from.give('bad')
    expect(from.told).toEqual(['pour', 'abort'])
    expect(noted).toEqual(['upstream-failed'])
  })

  test('an outlet that throws at the last event ends with an error', async () => {
    const facts = { ended: false, finished: false, failure: undefined, outputEvents: 1 }
    const stream = {
      facts,
      take(event: Uint8Array) {
        facts.ended = Buffer.from(event).toString().includes('last')
        return event
      },
      closing: () => new Uint8Array(),
    }
    const relay = new StreamRelay(scriptedExchange(200, ['data: a\n\n', 'data: last\n\n']), stream as never, {
      bytesMax: { event: 1024, stream: 64 * 1024 },
      leg: {} as never,
      judge: (failure) => failure,
      complete() {},
    })
    const { promise: ended, resolve } = Promise.withResolvers<string>()
    relay.pour({
      take(bytes) {
        if (Buffer.from(wholeOf(bytes)).toString().includes('last')) throw new Error('no room')
      },
      end: (failure) => resolve(failure?.kind ?? 'proper end'),
    })
    expect(await ended).toBe('bug')
  })
})

describe('the relay of several merged streams', () => {
  test('a reader without room pauses all streams', () => {
    const from = [vendor(), vendor()]
    const merged = new MergedRelay(
      from.map((from) => relayOf(from)),
      undefined as never,
    )
    merged.pour(noting(() => merged.pause()).outlet)
    from[0]?.give('a')
    expect(from.map(({ isPoured }) => isPoured())).toEqual([false, false])
  })

  test('a stream that is cut ends the merged stream once and aborts the other calls', () => {
    const from = [vendor(), vendor(), vendor()]
    const merged = new MergedRelay(
      from.map((from) => relayOf(from)),
      undefined as never,
    )
    const { noted, outlet } = noting()
    merged.pour(outlet)
    from[1]?.end(new GatewayError('upstream-failed', 'cut'))
    expect(noted).toEqual(['upstream-failed'])
    expect(from.map(({ told }) => told.includes('abort'))).toEqual([true, false, true])
  })

  test('the first events of all streams come before what follows them, in the order in which they came', async () => {
    const from = [vendor(), vendor()]
    const relays = from.map((from) => relayOf(from))
    const begun = relays.map((relay) => relay.begin())
    from[1]?.give('b')
    from[0]?.give('a')
    await Promise.all(begun)
    const { noted, outlet } = noting(() => {
      if (from.some(({ isPoured }) => isPoured())) noted.push('poured already')
    })
    new MergedRelay(relays, undefined as never, relays.toReversed()).pour(outlet)
    expect(noted).toEqual(['b', 'a'])
  })

  test("a reader that is full after one stream's first event gets none of the second", async () => {
    const from = [vendor(), vendor()]
    const relays = from.map((from) => relayOf(from))
    const begun = relays.map((relay) => relay.begin())
    for (const { give } of from) give('a')
    await Promise.all(begun)
    const merged = new MergedRelay(relays, undefined as never)
    const { noted, outlet } = noting(() => merged.pause())
    merged.pour(outlet)
    expect(noted).toEqual(['a'])
    expect(from.map(({ isPoured }) => isPoured())).toEqual([false, false])
  })
})
