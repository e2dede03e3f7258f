import { afterAll, describe, expect, test } from 'bun:test'
import { closeAll, listen, openClient, until } from '../../../test/support/http-server.ts'
import { Tap } from '../tap.ts'
import type { HttpRequest } from './request.ts'
import { Reply, type HttpResponse } from './reply.ts'

afterAll(closeAll)

const head = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n'
const whole = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\na'
const never = new Promise<never>(() => {})
const mebibyte = 1024 * 1024

type Seen = { requests: HttpRequest[]; aborts: number; bodies: string[] }

/** A server that notes what it sees of its requests, and answers each as it is told. */
function watch(answer: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>) {
  const seen: Seen = { requests: [], aborts: 0, bodies: [] }
  const listener = listen({
    answer(request) {
      seen.requests.push(request)
      request.signal.addEventListener('abort', () => seen.aborts++)
      return answer(request)
    },
  })
  return { seen, listener }
}

describe('a client that leaves is reported once', () => {
  const phases: Record<
    string,
    { sent: string; answer: (request: HttpRequest) => HttpResponse | Promise<HttpResponse> }
  > = {
    'while its body is read': { sent: head, answer: (request) => request.bytes().then(() => never) },
    'while its body waits to be read': {
      sent: head + 'x'.repeat(300_000),
      // While nothing is read of a connection, nobody hears that it was closed.
      answer: (request) => Bun.sleep(50).then(() => request.bytes().then(() => never)),
    },
    'before its answer': { sent: whole, answer: () => never },
    'in the middle of a stream': {
      sent: whole,
      answer({ signal }) {
        const tap = new Tap({ wanted: () => void tap.put(Buffer.from('begun')), gone() {} }, signal)
        return new Reply(200, {}, tap)
      },
    },
    'in the middle of a stream of the web': {
      sent: whole,
      answer: () =>
        new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('begun')) })),
    },
    'while its whole answer waits for it': {
      sent: whole,
      answer: () => new Reply(200, {}, Buffer.alloc(16 * mebibyte)),
    },
    'with more requests behind the first': { sent: whole + whole + whole, answer: () => never },
  }

  test.each(
    Object.entries(phases).flatMap(([name, phase]) =>
      (['destroy', 'resetAndDestroy'] as const).map((how) => [name, how, phase] as const),
    ),
  )('%s: %s', async (_name, how, { sent, answer }) => {
    const { seen, listener } = watch(answer)
    const client = openClient(listener.port, sent)
    client.socket.pause()
    await until(() => seen.requests.length === 1)
    if (sent === whole) await Bun.sleep(20) // for the answer to be under way
    expect({ underway: listener.underway, aborts: seen.aborts }).toEqual({ underway: 1, aborts: 0 })
    client.socket[how]()
    await until(() => listener.underway === 0)
    expect(seen).toMatchObject({ aborts: 1, requests: [{ signal: { aborted: true } }] })
    await listener.stop('gently')
    expect(seen).toMatchObject({ aborts: 1, requests: [{}] })
  })

  test('a body that is being read fails, whichever way it is read', async () => {
    const outcomes: string[] = []
    const noting = (read: Promise<unknown>) =>
      read.then(
        () => outcomes.push('whole'),
        () => outcomes.push('failed'),
      )
    const { seen, listener } = watch((request) => {
      void noting(seen.requests.length === 1 ? request.bytes() : new Response(request.body).arrayBuffer())
      return never
    })
    const clients = [openClient(listener.port, head), openClient(listener.port, head)]
    await until(() => seen.requests.length === 2)
    for (const { socket } of clients) socket.destroy()
    await until(() => outcomes.length === 2)
    expect(outcomes).toEqual(['failed', 'failed'])
  })

  test('a mistake in what listens does not keep others from hearing of it', async () => {
    const { seen, listener } = watch((request) => {
      request.signal.addEventListener('abort', () => {
        throw new Error('a mistake')
      })
      request.signal.addEventListener('abort', () => seen.bodies.push('heard'))
      return never
    })
    const client = openClient(listener.port, whole)
    await until(() => seen.requests.length === 1)
    client.socket.destroy()
    await until(() => listener.underway === 0)
    expect(seen.bodies).toEqual(['heard'])
    await listener.stop('gently')
  })
})

test('the body of a request that is answered before it has come fails for whoever still reads it', async () => {
  let outcome: string | undefined
  const { listener } = watch((request) => {
    request.bytes().then(
      () => (outcome = 'whole'),
      () => (outcome = 'failed'),
    )
    return new Reply(200, {}, Buffer.from('early'))
  })
  const client = openClient(listener.port, head)
  await until(() => client.text().endsWith('early'))
  await until(() => outcome !== undefined)
  expect(outcome).toBe('failed')
})

function stalled() {
  const { promise, resolve } = Promise.withResolvers<HttpResponse>()
  return { promise, goOn: () => resolve(new Reply(200, {}, Buffer.from('answered'))) }
}

describe('a stop', () => {
  test.each(['gently', 'at-once'] as const)(
    '%s, it ends every connection without a request',
    async (how) => {
      const { listener, seen } = watch(() => new Reply(200, {}, Buffer.from('one')))
      const fresh = openClient(listener.port)
      const used = openClient(listener.port, whole)
      const half = openClient(listener.port, whole.slice(0, 20))
      // A client that does not close when it is told that no more comes.
      const deaf = openClient(listener.port, whole)
      deaf.socket.removeAllListeners('end')
      await until(() => used.text().endsWith('one') && deaf.text().endsWith('one') && half.socket.bytesWritten > 0)
      await Promise.all([listener.stop(how), listener.stop('gently')])
      await until(() => [fresh, used, half].every((client) => client.isClosed()))
      expect(seen.requests).toHaveLength(2)
      expect([fresh, used, half].map((client) => client.failure())).toEqual([undefined, undefined, undefined])
    },
    30_000,
  )

  test('gently, it waits for answers, and for bodies that are on their way', async () => {
    const { promise, goOn } = stalled()
    const { listener, seen } = watch(async (request) => {
      seen.bodies.push(Buffer.from(await request.bytes()).toString())
      return promise
    })
    const waiting = openClient(listener.port, whole)
    const sending = openClient(listener.port, whole.slice(0, -1))
    await until(() => seen.requests.length === 2)
    let isStopped = false
    const stopped = listener.stop('gently').then(() => (isStopped = true))
    sending.socket.write('a')
    await until(() => seen.bodies.length === 2)
    expect(isStopped).toBe(false)
    goOn()
    await stopped
    await until(() => waiting.isClosed() && sending.isClosed())
    for (const client of [waiting, sending]) {
      expect(client.text()).toMatch(/\r\nconnection: close\r\n\r\nanswered$/)
    }
  })

  test('gently, it waits for what a slow client has yet to take', async () => {
    const { listener } = watch(() => new Reply(200, {}, Buffer.alloc(16 * mebibyte, 'x')))
    const client = openClient(listener.port, whole)
    client.socket.pause()
    await until(() => listener.underway === 1)
    await Bun.sleep(50)
    const stopped = listener.stop('gently')
    client.socket.resume()
    await stopped
    await until(client.isClosed)
    expect(client.text().length).toBeGreaterThan(16 * mebibyte)
  })

  test('at once, after one that goes gently, it cuts off what is left', async () => {
    const { listener, seen } = watch(() => never)
    const client = openClient(listener.port, whole + whole)
    await until(() => seen.requests.length === 1)
    const gently = listener.stop('gently')
    await listener.stop('at-once')
    await gently
    await until(client.isClosed)
    expect(seen).toMatchObject({ aborts: 1, requests: [{}] })
    expect(listener.underway).toBe(0)
  })
})
