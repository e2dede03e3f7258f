import { afterEach, beforeEach, expect, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { openBlackhole } from '../../../test/support/blackhole.ts'
import { handTimers } from '../../../test/support/hand-timers.ts'
import { standingClock } from '../../../test/support/movable-clock.ts'
import { answer } from '../../../test/support/vendor.ts'
import { noUnheardRejections, startWire, type Wire } from '../../../test/support/wire.ts'
import { thrownBy } from '../../../test/support/thrown.ts'
import type { Connection } from './connection.ts'
import { Incoming } from './incoming.ts'
import { Pool } from './pool.ts'
import { writeRequest } from './request.ts'
import { targetOf, type Target } from './target.ts'

noUnheardRejections()

let wire: Wire
let target: Target
const clock = standingClock()
let timers = handTimers()
let pool = new Pool(clock, timers)

beforeEach(async () => {
  wire = await startWire({ reply: ({ socket }) => void socket.write(answer(200, 'hello')) })
  target = targetOf(wire.url)
  timers = handTimers()
  pool = new Pool(clock, timers)
})
afterEach(() => wire.stop())

const opened = (at = target) => pool.connect(at).connection

/** One whole exchange, after which the connection is in the pool. */
async function use(connection: Connection): Promise<void> {
  const written = writeRequest({ url: wire.url, headers: {} }, target)
  await new Promise<void>((end) => {
    const begin = () => incoming.pour({ take() {} })
    const incoming = new Incoming(connection, { begin, unanswered: () => end(), end: () => end() })
    connection.ask(written, incoming)
  })
}

test('the sweep closes connections that are idle for too long, and stops when the pool is empty', async () => {
  const connections = [await opened(), await opened()] as const
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

test('a connection in use is not swept', async () => {
  const connection = await opened()
  await use(connection)
  expect(pool.take(target)).toBe(connection)
  clock.advance(60_000)
  timers.fire()
  await use(connection)
  expect(pool.take(target)).toBe(connection)
})

test('at most 256 idle connections are kept after a burst', async () => {
  const connections = await Promise.all(Array.from({ length: 260 }, () => opened()))
  await Promise.all(connections.map(use))
  expect(connections.filter(({ isClosed }) => isClosed).length).toBe(4)
  const taken = Array.from({ length: 257 }, () => pool.take(target))
  expect(taken.filter((connection) => connection !== undefined).length).toBe(256)
})

test('the sweep stops when the last connection was taken and closed', async () => {
  const connection = await opened()
  await use(connection)
  expect(pool.take(target)).toBe(connection)
  connection.destroy(new Error('enough'))
  timers.fire()
  expect(timers.waiting).toEqual([])
})

test('a connection that does not open in time fails and is closed', async () => {
  const secure = targetOf(wire.url.replace('http:', 'https:'))
  const opening = opened(secure)
  await wire.line(0)
  timers.fire()
  expect(await thrownBy(opening)).toBeInstanceOf(Error)
  await wire.lines[0]?.closed
})

test('a connection that opened leaves no timer', async () => {
  const connection = await opened()
  expect(timers.waiting).toEqual([])
  await use(connection)
})

test('a connection that could not be opened leaves no timer', async () => {
  const { url } = wire
  await wire.stop()
  expect(await thrownBy(opened(targetOf(url)))).toBeInstanceOf(Error)
  expect(timers.waiting).toEqual([])
  wire = await startWire({})
})

test('a connection that its call gave up before it opened goes to the next call', async () => {
  const first = pool.connect(target)
  first.giveUp()
  const second = pool.connect(target)
  expect(await second.connection).toBe(await first.connection)
  expect(wire.lines.length).toBe(1)
})

test('a connection handed to a call that gives up at that moment goes back to the pool', async () => {
  const first = pool.connect(target)
  first.giveUp()
  const second = pool.connect(target) // waits for the first call's connect
  const own = await first.connection
  for (let turn = 0; turn < 3; turn++) await Promise.resolve() // the pool hands it on, unnoticed by the second call
  second.giveUp()
  expect(await second.connection).toBe(own)
  expect(pool.take(target)).toBe(own)
})

test('a call that waited for the connect of another tries its own when that fails', async () => {
  const first = pool.connect(targetOf(wire.url.replace('http:', 'https:')))
  first.giveUp()
  const second = pool.connect(targetOf(wire.url.replace('http:', 'https:')))
  await wire.line(0)
  wire.lines[0]?.socket.destroy()
  expect(await thrownBy(first.connection)).toBeInstanceOf(Error)
  await wire.line(1)
  wire.lines[1]?.socket.destroy()
  expect(await thrownBy(second.connection)).toBeInstanceOf(Error)
})

const sockets = () =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:')
    } catch {
      return false // the descriptor of the folder itself is closed by now
    }
  }).length

test.skipIf(process.platform !== 'linux')('an address that does not answer takes one socket per second', async () => {
  const blackhole = await openBlackhole()
  try {
    const nowhere = targetOf(blackhole.baseUrl)
    const before = sockets()
    for (let second = 1; second <= 3; second++) {
      for (let calls = 0; calls < 50; calls++) pool.connect(nowhere).giveUp()
      expect(sockets() - before).toBe(second)
      clock.advance(1_000)
    }
  } finally {
    blackhole.close()
  }
})

test('a connection that the vendor closes while it is idle is forgotten, and the sweep stops', async () => {
  const connection = await opened()
  await use(connection)
  wire.lines[0]?.socket.destroy()
  for (let turns = 0; turns < 10_000 && !connection.isClosed; turns++) await Bun.sleep(1)
  timers.fire()
  expect(timers.waiting).toEqual([])
  expect(pool.take(target)).toBeUndefined()
  expect(connection.isClosed).toBe(true)
})

test('a connect that was given up and does not succeed in time is closed, and the next call makes its own', async () => {
  const secure = targetOf(wire.url.replace('http:', 'https:'))
  const first = pool.connect(secure)
  await wire.line(0)
  first.giveUp()
  timers.fire()
  await wire.lines[0]?.closed
  expect(timers.waiting).toEqual([])
  const second = pool.connect(secure)
  await wire.line(1)
  second.giveUp()
})

/** TLS to a server that does not speak it: the connect is made, and its handshake hangs. */
async function hangingConnect() {
  const hanging = pool.connect({ ...target, isSecure: true })
  await wire.line(0)
  return hanging
}

test('a connect that succeeds ends the wait of other calls, although an older connect still hangs', async () => {
  const hanging = await hangingConnect()
  hanging.giveUp()
  const waiting = [pool.connect(target), pool.connect(target)]
  clock.advance(1_000)
  const tried = await opened()
  const connected = await Promise.all(waiting.map(({ connection }) => connection))
  expect(new Set([tried, ...connected]).size).toBe(3)
})

test('a call that comes after a connect has hung for a second does not wait for it', async () => {
  const hanging = await hangingConnect()
  clock.advance(1_000)
  hanging.giveUp()
  const connection = await opened()
  expect(connection.isClosed).toBe(false)
})
