import { afterAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { until } from '../../test/support/gateway.ts'
import { closeAll, listen } from '../../test/support/http-server.ts'
import { byHand, meteredReply } from '../../test/support/metered.ts'
import type { Reply } from '../base/http/reply.ts'
import type { Outlet } from '../base/pour.ts'
import type { Bytes } from '../base/spliced.ts'

// O-03: readers of a metered stream that have no room for what comes.

const last = Buffer.alloc(64 * 1024 * 1024, 'x')
afterAll(closeAll)

/** Sends a reply to a client that does not read it. */
function unreadBy(reply: Reply) {
  const { port } = listen({
    answer(_request, connection) {
      connection.follow()
      return reply
    },
  })
  const socket = connect(port, '127.0.0.1')
  const read = { bytes: 0, tail: '', isClosed: false }
  socket.pause()
  socket.on('error', () => {})
  socket.on('close', () => (read.isClosed = true))
  socket.on('data', (bytes) => {
    read.bytes += bytes.length
    read.tail = (read.tail + bytes.toString('latin1')).slice(-7)
  })
  socket.write('GET / HTTP/1.1\r\nhost: here\r\n\r\n')
  return { socket, read }
}

/** A stream that holds everything back for its end. */
async function unread() {
  const { relay, end } = byHand()
  const { reply, ...made } = meteredReply({ ...relay, closing: () => last })
  const client = unreadBy(reply)
  await until(() => {
    end()
    return made.seen.settled === 1
  })
  await made.ended
  return { ...made, ...client }
}

test('a reader without room pauses the vendor until it has room again', async () => {
  const { relay, give } = byHand()
  const told: string[] = []
  const pour = (outlet: Outlet<Bytes>) => {
    told.push('pour')
    relay.pour(outlet)
  }
  const { reply, seen, pass } = meteredReply({ ...relay, pour, pause: () => void told.push('hold') })
  const { socket } = unreadBy(reply)
  await until(() => told.length === 1)
  give(last.toString('latin1'))
  expect(told).toEqual(['pour', 'hold'])
  socket.resume()
  await until(() => told.length === 3)
  expect(told).toEqual(['pour', 'hold', 'pour'])
  // From here on the vendor is silent, for which a reader that has room is not cut off.
  for (let looks = 0; looks < 10; looks++) {
    pass(250)
    await new Promise(setImmediate)
  }
  expect(seen.settled).toBe(0)
  socket.destroy()
})

test('the end of a stream waits for a full reader, and the connection is let go only after that', async () => {
  const { socket, read, letGo, seen, pass } = await unread()
  pass(500)
  expect(letGo()).toBe(0)
  socket.resume()
  await until(() => read.tail.endsWith('0\r\n\r\n'))
  expect(read.bytes).toBeGreaterThan(last.length)
  expect([letGo(), seen.settled]).toEqual([1, 1])
  socket.destroy()
})

test('a reader that takes too long for the end is cut off, and the stream stays settled', async () => {
  const { socket, read, letGo, seen, pass } = await unread()
  pass(900)
  await Bun.sleep(300)
  expect(read.isClosed).toBe(false)
  pass(1_000)
  socket.resume()
  await until(() => read.isClosed)
  expect(read.tail).not.toEndWith('0\r\n\r\n')
  expect([letGo(), seen.settled]).toEqual([0, 1])
})
