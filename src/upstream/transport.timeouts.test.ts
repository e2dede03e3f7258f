import { afterEach, describe, expect, test } from 'bun:test'
import { getEventListeners } from 'node:events'
import { handTimers } from '../../test/support/hand-timers.ts'
import { standingClock } from '../../test/support/movable-clock.ts'
import { answer, chunk, lastChunk, streamHead } from '../../test/support/vendor.ts'
import { noUnheardRejections, openTransport, startWire, textOf, type Line, type Wire } from '../../test/support/wire.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { systemClock } from '../base/clock.ts'
import { tickMs } from '../base/deadlines.ts'
import type { Exchange } from './transport.ts'

noUnheardRejections()

const limits = { connectMs: 3_000, firstByteMs: 10_000, idleMs: 5_000, totalMs: 60_000 }

let wire: Wire
afterEach(() => wire.stop())

/** A vendor that writes when the test says so. */
async function startWriting() {
  const asked = Promise.withResolvers<Line>()
  let neverAsked: (() => void) | undefined
  wire = await startWire({
    reply(line, { path }) {
      if (path === '/quick') line.socket.write(answer(200, 'quick'))
      else if (path === '/never') neverAsked?.()
      else asked.resolve(line)
    },
  })
  const clock = standingClock()
  const transport = openTransport(clock)
  return {
    transport,
    asked: asked.promise,
    advance: (ms: number) => clock.advance(ms),
    /** Lets time pass until every deadline that is over has been noticed, by the deadline of a call of its own. */
    pass: async (ms: number): Promise<void> => {
      const isAsked = new Promise<void>((resolve) => (neverAsked = resolve))
      const other = transport.failure(`${wire.url}/never`, { timeouts: { firstByteMs: 1 }, connection: 'new' })
      await isAsked
      clock.advance(ms)
      expect(await other).toBe('upstream-timeout, unknown')
    },
  }
}

/** A stream whose head has arrived. */
async function startStreaming(options: Parameters<ReturnType<typeof openTransport>['open']>[1]) {
  const { transport, asked, advance, pass } = await startWriting()
  const sent = transport.open(wire.url, options)
  const { socket, closed } = await asked
  socket.write(streamHead)
  return { socket, closed, exchange: await sent, advance, pass }
}

const firstByte = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString()

describe('the timeouts of a call', () => {
  test('a vendor that sends no first byte in time fails the call', async () => {
    const { transport, asked, advance } = await startWriting()
    const failed = transport.failure(wire.url, { timeouts: limits })
    const { closed } = await asked
    advance(limits.firstByteMs + 1)
    expect(await failed).toBe('upstream-timeout, unknown')
    await closed
  })

  test('the wait for the first byte is bounded by the total timeout too', async () => {
    const { transport, asked, advance } = await startWriting()
    const failed = transport.failure(wire.url, { timeouts: { ...limits, totalMs: 4_000 } })
    await asked
    advance(4_001)
    expect(await failed).toBe('upstream-timeout, unknown')
  })

  test('the first-byte timeout starts with the call, not with its connection', async () => {
    const { transport, asked, pass } = await startWriting()
    await transport.text(`${wire.url}/quick`, { timeouts: limits })
    await pass(15_000)
    const sent = transport.text(wire.url, { timeouts: limits })
    const { socket } = await asked
    await pass(limits.firstByteMs - 1)
    socket.write(answer(200, 'hello'))
    expect(await sent).toBe('hello')
    expect(wire.lines[0]?.asked.length).toBe(2)
  })

  test('a stream that is silent for longer than the idle timeout fails', async () => {
    const { socket, closed, exchange, advance } = await startStreaming({ timeouts: limits })
    socket.write(chunk('a'))
    expect(firstByte(await exchange.read())).toBe('a')
    const second = thrownBy(exchange.read())
    advance(limits.idleMs + 1)
    expect(await second).toMatchObject({ kind: 'upstream-timeout' })
    await closed
    expect(await thrownBy(exchange.read())).toMatchObject({ kind: 'upstream-timeout' })
  })

  test('the idle timeout starts again with each read', async () => {
    const { socket, exchange, pass } = await startStreaming({ timeouts: limits })
    for (let i = 0; i < 3; i++) {
      const read = exchange.read()
      await pass(limits.idleMs - 1)
      socket.write(chunk(String(i)))
      expect(firstByte(await read)).toBe(String(i))
    }
    socket.write(lastChunk)
    expect(await exchange.read()).toBeUndefined()
  })

  test('the idle timeout starts again with each piece that is poured', async () => {
    const { socket, exchange, pass } = await startStreaming({ timeouts: limits })
    let heard: (() => void) | undefined
    let failure: unknown
    exchange.pour({ take: () => heard?.(), end: (given) => void (failure = given) })
    for (let i = 0; i < 3; i++) {
      await pass(limits.idleMs - tickMs - 1)
      const came = new Promise<void>((resolve) => (heard = resolve))
      socket.write(chunk(String(i)))
      await came
    }
    expect(failure).toBeUndefined()
    await pass(tickMs) // by then the last piece has been noticed
    await pass(limits.idleMs)
    expect(failure).toMatchObject({ kind: 'upstream-timeout' })
  })

  test('the total timeout ends a stream that is still being sent', async () => {
    const { socket, exchange, pass } = await startStreaming({ timeouts: { ...limits, totalMs: 11_000 } })
    for (let i = 0; i < 2; i++) {
      const read = exchange.read()
      await pass(4_000)
      socket.write(chunk('a'))
      expect(firstByte(await read)).toBe('a')
    }
    const last = thrownBy(exchange.read())
    await pass(4_000)
    expect(await last).toMatchObject({ kind: 'upstream-timeout' })
  })

  test('no timeout runs while the vendor waits for a reader', async () => {
    const { socket, exchange, pass } = await startStreaming({ timeouts: limits })
    // No timeout runs before the first read or between two.
    await pass(limits.firstByteMs + limits.idleMs)
    socket.write(chunk('a'))
    expect(firstByte(await exchange.read())).toBe('a')
    await pass(limits.idleMs * 3)
    socket.write(chunk('b'))
    expect(firstByte(await exchange.read())).toBe('b')
    socket.write(lastChunk)
    expect(await exchange.read()).toBeUndefined()
  })

  test('the idle timeout closes a connection whose finished stream does not end', async () => {
    const { socket, closed, exchange, advance } = await startStreaming({ timeouts: limits })
    socket.write(chunk('data: [DONE]\n\n'))
    await exchange.read()
    exchange.finish()
    advance(limits.idleMs + 1)
    await closed
  })
})

describe('a client that leaves', () => {
  test('a call that waits for its answer is ended', async () => {
    const { transport, asked } = await startWriting()
    const client = new AbortController()
    const failed = transport.failure(wire.url, { signal: client.signal })
    const { closed } = await asked
    client.abort()
    expect(await failed).toBe('client-gone, unknown')
    await closed
    expect(getEventListeners(client.signal, 'abort')).toEqual([])
  })

  test('an answer that is being read is ended', async () => {
    const { transport, asked } = await startWriting()
    const client = new AbortController()
    const sent = transport.open(wire.url, { signal: client.signal })
    const { socket, closed } = await asked
    socket.write(streamHead)
    const exchange = await sent
    const read = thrownBy(exchange.read())
    client.abort()
    expect(await read).toMatchObject({ kind: 'client-gone' })
    await closed
    expect(getEventListeners(client.signal, 'abort')).toEqual([])
  })

  test('an answer that is not being read is ended, and the next read fails with client-gone', async () => {
    const { transport, asked } = await startWriting()
    const client = new AbortController()
    const sent = transport.open(wire.url, { signal: client.signal })
    const { socket, closed } = await asked
    socket.write(Buffer.concat([Buffer.from(streamHead), chunk('a')]))
    const exchange = await sent
    client.abort()
    await closed
    expect(await thrownBy(exchange.read())).toMatchObject({ kind: 'client-gone' })
    expect(await thrownBy(exchange.readAll(10))).toMatchObject({ kind: 'client-gone' })
  })

  test('a call that outlives its client goes on', async () => {
    const client = new AbortController()
    const { socket, exchange } = await startStreaming({ signal: client.signal })
    exchange.outliveClient()
    expect(getEventListeners(client.signal, 'abort')).toEqual([])
    client.abort()
    socket.write(chunk('a'))
    expect(firstByte(await exchange.read())).toBe('a')
    socket.write(lastChunk)
    expect(await exchange.read()).toBeUndefined()
  })

  test('the next call over the same connection goes on', async () => {
    const { transport, asked } = await startWriting()
    const client = new AbortController()
    await transport.text(`${wire.url}/quick`, { signal: client.signal })
    const second = transport.text(wire.url)
    const { socket } = await asked
    client.abort()
    socket.write(answer(200, 'mine'))
    expect(await second).toBe('mine')
    expect(wire.lines.length).toBe(1)
  })
})

describe("the abort listener on a client's signal", () => {
  test.each<[when: string, reply: (line: Line) => void]>([
    ['whose call was answered', ({ socket }) => socket.write(answer(200, 'hello'))],
    ['whose call was refused', ({ socket }) => socket.write(answer(500, ''))],
    ['whose connection was closed', ({ socket }) => socket.destroy()],
    ['whose answer was cut', ({ socket }) => socket.end(answer(200, 'hello').slice(0, -1))],
    ['whose answer was no answer', ({ socket }) => socket.write('SSH-2.0\r\n\r\n')],
    ['whose answer was larger than it may be', ({ socket }) => socket.write(answer(200, 'x'.repeat(1_001)))],
  ])('no listener is left on a client %s', async (_when, reply) => {
    wire = await startWire({ reply })
    const { signal } = new AbortController()
    const sent = await openTransport().send(wire.url, { signal })
    if (sent.kind === 'response') await thrownBy(sent.exchange.readAll(1_000))
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test.each(['abort', 'finish'] as const)('no listener is left after a call that was ended with %s', async (end) => {
    wire = await startWire({ reply: ({ socket }) => void socket.write(answer(200, 'hello')) })
    const { signal } = new AbortController()
    const exchange = await openTransport().open(wire.url, { signal })
    exchange[end]()
    // The rest has arrived already, and is read in a few turns of the microtask queue.
    for (let i = 0; i < 10; i++) await Promise.resolve()
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('no listener is left on a client whose vendor could not be reached', async () => {
    wire = await startWire({})
    const { signal } = new AbortController()
    expect(await openTransport().failure('http://nobody.invalid', { signal })).toBe('upstream-failed, unsent')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('no listener is left on a client that made fifty calls', async () => {
    wire = await startWire({ reply: ({ socket }) => void socket.write(answer(200, 'hello')) })
    const { signal } = new AbortController()
    const transport = openTransport()
    for (let i = 0; i < 50; i++) await transport.text(wire.url, { signal })
    expect(getEventListeners(signal, 'abort')).toEqual([])
    expect(await textOf(await transport.open(wire.url, { signal }))).toBe('hello')
  })
})

describe('the deadlines of a call that is over', () => {
  test.each<[when: string, end: (exchange: Exchange, client: AbortController) => unknown]>([
    ['that was read', (exchange) => textOf(exchange)],
    ['that was aborted', (exchange) => exchange.abort()],
    [
      'that was aborted twice and then read',
      (exchange) => (exchange.abort(), exchange.abort(), thrownBy(exchange.read())),
    ],
    ['that was finished', (exchange) => exchange.finish()],
    ['whose client left and that is not read', (_exchange, client) => client.abort()],
    ['whose client left and that is read', (exchange, client) => (client.abort(), thrownBy(exchange.read()))],
  ])('no deadline is kept for a call %s', async (_when, end) => {
    await startWriting()
    const timers = handTimers()
    const client = new AbortController()
    const exchange = await openTransport(systemClock, timers).open(`${wire.url}/quick`, { signal: client.signal })
    expect(timers.waiting).toContain(tickMs)
    await end(exchange, client)
    timers.fire()
    // When the last deadline is gone, the timer for all of them stops.
    expect(timers.waiting).not.toContain(tickMs)
  })
})
