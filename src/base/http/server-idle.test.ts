import { afterAll, expect, test } from 'bun:test'
import { Reply } from './reply.ts'
import { closeAll, listen, openClient, until } from '../../../test/support/http-server.ts'

afterAll(closeAll)

const get = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'
const secondMs = 1_000

test.concurrent('a connection whose answer took longer than it may be idle is not closed when the answer is there', async () => {
  const { port } = listen({
    idleSeconds: 2,
    async answer(_request, connection) {
      await Bun.sleep(4 * secondMs)
      connection.letGo()
      return new Reply(200, {}, Buffer.from('late'))
    },
  })
  const client = openClient(port, get)
  await until(() => client.text().endsWith('late'))
  const answeredAt = performance.now()
  await until(client.isClosed)
  expect(performance.now() - answeredAt).toBeGreaterThan(1.4 * secondMs)
}, 30_000)

test.concurrent('a stream that was quiet for longer than a connection may be idle leaves its connection open', async () => {
  const { port } = listen({
    idleSeconds: 2,
    answer(_request, connection) {
      connection.follow()
      const body = new ReadableStream({
        async start(controller) {
          controller.enqueue(Buffer.from('first'))
          await Bun.sleep(4 * secondMs)
          connection.letGo()
          controller.close()
        },
      })
      return new Response(body)
    },
  })
  const client = openClient(port, get)
  await until(() => client.text().endsWith('0\r\n\r\n'))
  const answeredAt = performance.now()
  await until(client.isClosed)
  expect(performance.now() - answeredAt).toBeGreaterThan(1.4 * secondMs)
}, 30_000)

// Of a body of this size, the system takes all while the client has not read any of it.
const wholeBytes = 2 * 1024 * 1024

/** A client that does not read anything for a while. */
function openSlow(port: number, sent: string, ms: number) {
  const client = openClient(port, sent)
  client.socket.pause()
  setTimeout(() => client.socket.resume(), ms)
  return client
}

const large = () => new Reply(200, {}, Buffer.alloc(wholeBytes, 'x'))
const bodyLength = (text: string) => text.length - text.indexOf('\r\n\r\n') - 4

test.concurrent('a client that reads the last answer late gets all of it', async () => {
  const { port } = listen({ answer: large })
  const client = openSlow(port, 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n', 5 * secondMs)
  await until(client.isClosed)
  expect(bodyLength(client.text())).toBe(wholeBytes)
  expect(client.failure()).toBeUndefined()
}, 30_000)

test.concurrent('a client that reads an answer later than its connection may be idle gets all of it', async () => {
  const { port } = listen({ idleSeconds: 1, answer: large })
  const client = openSlow(port, get, 5 * secondMs)
  await until(client.isClosed)
  expect(bodyLength(client.text())).toBe(wholeBytes)
  expect(client.failure()).toBeUndefined()
}, 30_000)

test.concurrent('a client that reads its answer after a stop at once gets all of it', async () => {
  const listener = listen({ answer: large })
  const client = openSlow(listener.port, get, 500)
  await until(() => listener.underway === 0 && client.socket.bytesWritten > 0)
  await Bun.sleep(100)
  await listener.stop('at-once')
  await until(client.isClosed)
  expect(bodyLength(client.text())).toBe(wholeBytes)
  expect(client.failure()).toBeUndefined()
})

test.concurrent('a client that goes on sending after the last answer is not listened to for ever', async () => {
  const { port } = listen({ answer: () => new Reply(200, {}, Buffer.from('answered')) })
  const client = openClient(port, 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n')
  client.socket.removeAllListeners('end')
  await until(() => client.text().endsWith('answered'))
  const sending = setInterval(() => client.socket.write('x'), 100)
  await until(client.isClosed)
  clearInterval(sending)
  expect(client.text()).toContain('\r\nconnection: close\r\n')
}, 30_000)

function dripping(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      for (let i = 0; i < 8; i++) {
        controller.enqueue(Buffer.from(`${i}`))
        await Bun.sleep(secondMs / 2)
      }
      controller.close()
    },
  })
}

test.concurrent('a stream that is sent something in time is not quiet', async () => {
  const { port } = listen({ idleSeconds: 1, answer: () => new Response(dripping()) })
  const client = openClient(port, get)
  await until(() => client.text().endsWith('0\r\n\r\n'))
  expect(client.text()).toEndWith('1\r\n7\r\n0\r\n\r\n')
}, 30_000)

test.concurrent('a stream that is over leaves its connection idle, even if nobody has let go of it', async () => {
  const { port } = listen({
    idleSeconds: 1,
    answer(_request, connection) {
      connection.follow()
      return new Response(dripping())
    },
  })
  const client = openClient(port, get)
  await until(client.isClosed)
  expect(client.text()).toEndWith('1\r\n7\r\n0\r\n\r\n')
}, 30_000)
