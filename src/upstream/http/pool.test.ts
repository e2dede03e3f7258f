import { afterEach, beforeEach, expect, test } from 'bun:test'
import { handTimers } from '../../../test/support/hand-timers.ts'
import { movableClock } from '../../../test/support/movable-clock.ts'
import { answer } from '../../../test/support/vendor.ts'
import { errorOf, noUnheardRejections, startWire, type Wire } from '../../../test/support/wire.ts'
import type { Connection } from './connection.ts'
import { Pool } from './pool.ts'
import { writeRequest } from './request.ts'
import { targetOf, type Target } from './target.ts'

noUnheardRejections()

let wire: Wire
let target: Target
const clock = movableClock()
let timers = handTimers()
let pool = new Pool(clock, timers)

beforeEach(async () => {
  wire = await startWire({ reply: ({ socket }) => void socket.write(answer(200, 'hello')) })
  target = targetOf(wire.url)
  timers = handTimers()
  pool = new Pool(clock, timers)
})
afterEach(() => wire.stop())

/** One whole exchange, after which the connection is in the pool. */
async function use(connection: Connection): Promise<void> {
  const written = await writeRequest({ url: wire.url, headers: {} }, target)
  const incoming = connection.ask(written)
  await incoming.head
  for (let reads = 0; reads < 10 && (await incoming.read()) !== undefined;) reads++
}

test('what is idle for too long is closed by the sweep, and nothing ticks for an empty pool', async () => {
  const connections = [await pool.connect(target), await pool.connect(target)] as const
  await use(connections[0])
  expect(timers.waiting).toEqual([5_000])
  clock.advance(20_000)
  await use(connections[1])
  timers.fire()
  expect(connections.map(({ isClosed }) => isClosed)).toEqual([false, false])
  clock.advance(15_000)
  timers.fire()
  await wire.lines[0]?.closed
  expect(connections.map(({ isClosed }) => isClosed)).toEqual([true, false])
  expect(timers.waiting).toEqual([5_000])
  clock.advance(15_001)
  timers.fire()
  await wire.lines[1]?.closed
  expect(timers.waiting).toEqual([])
  expect(pool.take(target)).toBeUndefined()
})

test('what is in use is not swept', async () => {
  const connection = await pool.connect(target)
  await use(connection)
  expect(pool.take(target)).toBe(connection)
  clock.advance(60_000)
  timers.fire()
  await use(connection)
  expect(pool.take(target)).toBe(connection)
})

test('of a burst no more are kept than are worth it', async () => {
  const connections = await Promise.all(Array.from({ length: 260 }, () => pool.connect(target)))
  await Promise.all(connections.map(use))
  expect(connections.filter(({ isClosed }) => isClosed).length).toBe(4)
  const taken = Array.from({ length: 257 }, () => pool.take(target))
  expect(taken.filter((connection) => connection !== undefined).length).toBe(256)
})

test('what was closed while it was idle is forgotten by the sweep', async () => {
  const connection = await pool.connect(target)
  pool.keep(connection)
  expect(pool.take(target)).toBe(connection)
  connection.destroy(new Error('enough'))
  timers.fire()
  expect(timers.waiting).toEqual([])
})

test('a connection that never opens is given up, even where nobody waits for it any more', async () => {
  const secure = targetOf(wire.url.replace('http:', 'https:'))
  const opening = pool.connect(secure)
  await wire.line(0)
  timers.fire()
  expect(await errorOf(opening)).toBeInstanceOf(Error)
  await wire.lines[0]?.closed
})

test('a connection that opened is not given up for that', async () => {
  const connection = await pool.connect(target)
  expect(timers.waiting).toEqual([])
  await use(connection)
})

test('a connection that could not be opened leaves no timer', async () => {
  const { url } = wire
  await wire.stop()
  expect(await errorOf(pool.connect(targetOf(url)))).toBeInstanceOf(Error)
  expect(timers.waiting).toEqual([])
  wire = await startWire({})
})
