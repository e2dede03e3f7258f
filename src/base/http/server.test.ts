import { afterAll, describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { silentLog } from '../log.ts'
import { callableHost, type Listener } from '../listen.ts'
import type { Connection } from './connection.ts'
import { Reply, type HttpResponse } from './reply.ts'
import { serveHttp } from './server.ts'

const listeners: Listener[] = []
const sockets: Socket[] = []
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await Promise.all(listeners.map((listener) => listener.stop('at-once')))
})

const sentWhole = 'POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\n\r\nab'

const whole = () => new Reply(200, {}, Buffer.from('whole'))

/** Opens a port whose connections may be idle for `idleSeconds`, and sends a request, or part of one, to it. */
function visit(answer: (connection: Connection) => HttpResponse, idleSeconds = 1, sent = sentWhole) {
  const listener = serveHttp({
    hostname: '127.0.0.1',
    port: 0,
    setting: 'PORT',
    log: silentLog,
    idleSeconds,
    async answer(request, connection) {
      await request.bytes()
      return answer(connection)
    },
  })
  listeners.push(listener)
  const socket = connect(listener.port, '127.0.0.1')
  sockets.push(socket)
  let text = ''
  let isClosed = false
  socket.on('error', () => {})
  socket.on('data', (bytes) => (text += bytes.toString('latin1')))
  socket.on('close', () => (isClosed = true))
  socket.write(sent)
  return { socket, text: () => text, isClosed: () => isClosed }
}

// Bun checks its idle timers only every four seconds.
const closesWithinMs = 12_000

async function until(isTrue: () => boolean, ms = closesWithinMs): Promise<void> {
  const giveUpAt = performance.now() + ms
  while (!isTrue() && performance.now() < giveUpAt) await Bun.sleep(10)
}

// Requests set out at the end of the turn in which they arrive, so a stop may come in between.
test.each([
  { how: 'gently', outcome: 'is answered', aborted: false, answer: 'whole' },
  { how: 'at-once', outcome: 'sets out as one whose client has left', aborted: true, answer: '' },
] as const)('a request that arrives just before a stop, $how, $outcome', async ({ how, aborted, answer }) => {
  const seen: boolean[] = []
  const listener = serveHttp({
    hostname: '127.0.0.1',
    port: 0,
    setting: 'PORT',
    log: silentLog,
    answer({ signal }) {
      seen.push(signal.aborted)
      return whole()
    },
  })
  const socket = connect(listener.port, '127.0.0.1')
  sockets.push(socket)
  let text = ''
  socket.on('data', (bytes) => (text += bytes.toString('latin1')))
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.write(sentWhole)
  while (listener.underway === 0) await new Promise((resolve) => setImmediate(resolve))
  expect(seen).toEqual([])
  await listener.stop(how)
  await closed
  expect(seen).toEqual([aborted])
  expect(text.split('\r\n').at(-1)).toBe(answer)
})

test('two reads in one packet are both answered, in order', async () => {
  const listener = serveHttp({
    hostname: '127.0.0.1',
    port: 0,
    setting: 'PORT',
    log: silentLog,
    answer: ({ url }) => Promise.resolve(new Reply(200, {}, Buffer.from(new URL(url).pathname))),
  })
  listeners.push(listener)
  const socket = connect(listener.port, '127.0.0.1')
  sockets.push(socket)
  let text = ''
  socket.on('data', (bytes) => (text += bytes.toString('latin1')))
  socket.write('GET /first HTTP/1.1\r\nhost: a\r\n\r\nGET /second HTTP/1.1\r\nhost: a\r\n\r\n')
  await until(() => text.includes('/second'))
  expect(text.match(/\/(?:first|second)/g)).toEqual(['/first', '/second'])
})

describe('a connection on which nothing more comes', () => {
  test.concurrent.each([
    ['from the beginning', ''],
    ['in the middle of a body', sentWhole.slice(0, -1)],
  ])(
    'the connection is closed: %s',
    async (_name, sent) => {
      const { text, isClosed } = visit(() => whole(), 1, sent)
      // A head has twelve seconds, however long the connection may be idle.
      await until(isClosed, 2 * closesWithinMs)
      expect([isClosed(), text()]).toEqual([true, ''])
    },
    120_000,
  )
})

describe('a connection that has had an answer', () => {
  test.concurrent('the connection is closed when no further request comes', async () => {
    const { text, isClosed } = visit(() => whole())
    await until(() => text().endsWith('whole'))
    expect(text()).toEndWith('whole')
    await until(isClosed)
    expect(isClosed()).toBe(true)
  }, 120_000)

  test.concurrent('the connection is closed when the head of a further request stays incomplete', async () => {
    const { socket, text, isClosed } = visit(() => whole())
    await until(() => text().endsWith('whole'))
    socket.write('POST / HTTP/1.1\r\nhos')
    await until(isClosed)
    expect(isClosed()).toBe(true)
  }, 120_000)

  test.concurrent('the connection is closed after an answer too long to be taken at once', async () => {
    const bytes = 64 * 1024
    const { text, isClosed } = visit((connection) => {
      connection.letGo(bytes)
      return new Reply(200, {}, Buffer.from(`${'x'.repeat(bytes - 5)}whole`))
    })
    await until(() => text().endsWith('whole'))
    expect(text()).toEndWith('whole')
    await until(isClosed)
    expect(isClosed()).toBe(true)
  }, 120_000)

  test.concurrent('the connection stays open while a long answer is read slowly, and is closed afterwards', async () => {
    const bytes = 24 * 1024 * 1024
    // The shortest timeout that can be renewed, because Bun counts in steps of four seconds.
    const idleSeconds = 8
    const { socket, text, isClosed } = visit((connection) => {
      connection.letGo(bytes)
      return new Reply(200, {}, Buffer.from(`${'x'.repeat(bytes - 5)}whole`))
    }, idleSeconds)
    // The client reads slowly for twice the idle time, and then takes the rest at once.
    const readUntil = performance.now() + 16_000
    let taken = 0
    const slowly = (piece: Buffer) => {
      taken += piece.length
      if (performance.now() > readUntil) return
      socket.pause()
      setTimeout(() => socket.resume(), piece.length / 200)
    }
    socket.on('data', slowly)
    await until(() => text().endsWith('whole') || isClosed(), 60_000)
    expect(performance.now()).toBeGreaterThan(readUntil)
    expect(taken).toBeGreaterThan(bytes)
    await until(isClosed, 24_000)
    expect(isClosed()).toBe(true)
  }, 120_000)

  test.concurrent('the connection stays open while its quiet stream is followed, and is closed once let go', async () => {
    let end: (() => void) | undefined
    let held: Connection | undefined
    const { text, isClosed } = visit((connection) => {
      held = connection
      connection.follow()
      return new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode('first'))
            end = () => controller.close()
          },
        }),
      )
    })
    await until(() => text().includes('first'))
    await Bun.sleep(9_000)
    expect(isClosed()).toBe(false)
    held?.letGo()
    end?.()
    await until(() => text().endsWith('0\r\n\r\n'))
    expect(text()).toEndWith('0\r\n\r\n')
    await until(isClosed)
    expect(isClosed()).toBe(true)
  }, 120_000)
})

describe('the address at which this machine can call a listener', () => {
  const both = ['127.0.0.1', '10.1.2.3', '::1']
  const withoutIpv6 = ['127.0.0.1', '10.1.2.3']

  test.each([
    ['0.0.0.0', both, '127.0.0.1'],
    ['*', both, '127.0.0.1'],
    ['::', both, '::1'],
    ['::', withoutIpv6, '127.0.0.1'],
    ['10.1.2.3', withoutIpv6, '10.1.2.3'],
    ['localhost', both, 'localhost'],
  ])('%s on a machine that has %j is called at %s', (hostname, addresses, called) => {
    expect(callableHost(hostname, () => addresses)).toBe(called)
  })
})
