import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closeAll, listen, openClient, until, type Client } from '../../../test/support/http-server.ts'
import { Reply } from './reply.ts'
import type { HttpRequest } from './request.ts'

let port: number
let stalls: (() => void)[] = []
beforeAll(() => {
  port = listen({ answer }).port
})
afterAll(closeAll)

/** Tells what it was asked; `/stall` is answered when a test says so, and `/unread` without a look at the body. */
async function answer(request: HttpRequest): Promise<Reply> {
  const { pathname } = new URL(request.url)
  if (pathname === '/stall') await new Promise<void>((resolve) => stalls.push(resolve))
  const body = pathname === '/unread' ? '' : Buffer.from(await request.bytes()).toString('latin1')
  return new Reply(200, {}, Buffer.from(`<${request.method} ${pathname} ${body}>`, 'latin1'))
}

const told = ({ text }: Client): string[] => [...text().matchAll(/<[^>]*>/g)].map(([one]) => one)

function post(path: string, body: string, ...headers: string[]): string {
  const lines = [`POST ${path} HTTP/1.1`, 'host: a', ...headers, `content-length: ${body.length}`]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

const get = (path: string, ...headers: string[]) => [`GET ${path} HTTP/1.1`, 'host: a', ...headers, '\r\n'].join('\r\n')

async function inPieces(pieces: readonly string[]): Promise<Client> {
  const client = openClient(port)
  client.socket.setNoDelay(true)
  for (const piece of pieces) {
    await new Promise<void>((resolve) => client.socket.write(Buffer.from(piece, 'latin1'), () => resolve()))
    // Time for the server to read this piece before the next one comes.
    await Bun.sleep(2)
  }
  return client
}

describe('a request that is cut anywhere is answered alike', () => {
  const chunked = [
    'POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n',
    '3;a=b\r\nabc\r\n0A\r\n0123456789\r\n0\r\nx-trailer: y\r\n\r\n',
  ].join('')
  const requests = {
    'a body with a length': [post('/measured', 'abc'), '<POST /measured abc>'],
    'a body in chunks': [chunked, '<POST /chunked abc0123456789>'],
    'no body, after empty lines': [`\r\n\r\n${get('/bare')}`, '<GET /bare >'],
  } as const

  test.each(Object.entries(requests))('%s', async (_name, [request, wanted]) => {
    const cuts = Array.from({ length: request.length - 1 }, (_, at) => [
      request.slice(0, at + 1),
      request.slice(at + 1),
    ])
    const clients = await Promise.all([...cuts, request.split('')].map(inPieces))
    await until(() => clients.every((client) => told(client).length > 0))
    expect(clients.map(told)).toEqual(clients.map(() => [wanted]))
    // Nothing is left over that would be taken for the beginning of the next request.
    for (const { socket } of clients) socket.write(get('/next'))
    await until(() => clients.every((client) => told(client).length === 2))
    expect(clients.map((client) => told(client)[1])).toEqual(clients.map(() => '<GET /next >'))
    for (const { socket } of clients) socket.destroy()
  })

  test('a head of exactly the size that is allowed', async () => {
    const empty = get('/', 'x: ')
    const largest = get('/', `x: ${'a'.repeat(16 * 1024 - empty.length + '\r\n\r\n'.length)}`)
    for (const [request, status] of [
      [largest, 200],
      [largest.replace('x: ', 'x: a'), 431],
    ] as const) {
      const cuts = [1, 2, 3, 4, 5].map((at) => [request.slice(0, -at), request.slice(-at)])
      const clients = await Promise.all([[request], ...cuts].map(inPieces))
      await until(() => clients.every((client) => client.statuses().length > 0))
      expect(clients.map((client) => client.statuses())).toEqual(clients.map(() => [status]))
    }
  })
})

describe('requests that come before the answer to the last', () => {
  const many = 1_000

  test.each([
    ['reads', (i: number) => get(`/${i}`), (i: number) => `<GET /${i} >`],
    ['writes', (i: number) => post(`/${i}`, `body ${i}`), (i: number) => `<POST /${i} body ${i}>`],
  ])('a thousand %s in one packet are answered in order', async (_name, request, wanted) => {
    const all = Array.from({ length: many }, (_, i) => i)
    const client = openClient(port, all.map(request).join(''))
    await until(() => told(client).length >= many)
    expect(told(client)).toEqual(all.map(wanted))
  })

  test('others are served while those of one client are answered', async () => {
    const greedy = openClient(port, get('/').repeat(5_000))
    await until(() => greedy.statuses().length > 0)
    const other = openClient(port, get('/other'))
    await until(() => told(other).length > 0)
    expect(greedy.statuses().length).toBeLessThan(5_000)
    await until(() => greedy.statuses().length === 5_000)
  })

  test('they wait, megabytes of them outside of this process, until the first is answered', async () => {
    const client = openClient(port, post('/stall', 'a'))
    await until(() => stalls.length > 0)
    const one = post('/', 'x'.repeat(1_000))
    const sent = 64 * 1024
    const isTaken = client.socket.write(one.repeat(sent))
    const before = process.memoryUsage().rss
    await Bun.sleep(300)
    expect({ isTaken, waits: client.socket.writableLength > 32 * 1024 * 1024 }).toEqual({ isTaken: false, waits: true })
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
    client.socket.destroy()
    for (const goOn of stalls.splice(0)) goOn()
  })

  test('what follows a request for the last answer is not answered', async () => {
    const client = openClient(port, get('/', 'connection: close') + get('/second'))
    await until(client.isClosed)
    expect(told(client)).toEqual(['<GET / >'])
  })

  test('what follows a body that nobody has read is not answered', async () => {
    const client = openClient(port, post('/unread', 'abc').replace('length: 3', 'length: 300') + get('/second'))
    await until(client.isClosed)
    expect(told(client)).toEqual(['<POST /unread >'])
    expect(client.text()).toContain('\r\nconnection: close\r\n')
  })

  test('a body that has come whole need not be read', async () => {
    const client = openClient(port, post('/unread', 'abc') + post('/unread', 'x'.repeat(4_000)) + get('/last'))
    await until(() => told(client).length === 3)
    expect(told(client)).toEqual(['<POST /unread >', '<POST /unread >', '<GET /last >'])
  })
})

const head = (path: string) => post(path, 'abc', 'expect: 100-continue').slice(0, -3)

describe('a client that waits for permission to send its body', () => {
  test('it is permitted once the body is read', async () => {
    const client = openClient(port, head('/'))
    await until(() => client.text() !== '')
    expect(client.text()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    client.socket.write('abc')
    await until(() => told(client).length > 0)
    expect(client.statuses()).toEqual([100, 200])
    expect(told(client)).toEqual(['<POST / abc>'])
  })

  test('it is not permitted where it did not wait', async () => {
    const client = openClient(port, `${head('/')}abc`)
    await until(() => told(client).length > 0)
    expect(client.statuses()).toEqual([200])
  })

  test('its body is not waited for where nobody reads it', async () => {
    const client = openClient(port, head('/unread'))
    await until(client.isClosed)
    expect(client.statuses()).toEqual([200])
    expect(client.text()).toContain('\r\nconnection: close\r\n')
  })

  test('one that speaks HTTP/1.0 gets no interim answer', async () => {
    const client = openClient(port, head('/').replace('HTTP/1.1', 'HTTP/1.0'))
    client.socket.write('abc')
    await until(() => told(client).length > 0)
    expect(client.text()).toStartWith('HTTP/1.1 200')
  })

  test('it gets no permission in the middle of an answer', async () => {
    const { port: other } = listen({
      answer: (request) =>
        new Response(
          new ReadableStream({
            async start(controller) {
              controller.enqueue(Buffer.from('begun'))
              await Bun.sleep(20)
              request.bytes().catch(() => {})
              controller.enqueue(Buffer.from('more'))
              controller.close()
            },
          }),
        ),
    })
    const client = openClient(other, head('/'))
    await until(client.isClosed)
    expect(client.statuses()).toEqual([200])
    expect(client.text()).toEndWith('5\r\nbegun\r\n4\r\nmore\r\n0\r\n\r\n')
  })

  test('another expectation is refused', async () => {
    const client = openClient(port, post('/', 'abc', 'expect: 200-maybe'))
    await until(client.isClosed)
    expect(client.statuses()).toEqual([417])
  })
})

describe('what is not HTTP', () => {
  test.each([
    ['a head', 'GET / HTTP/1.1\r\nhost : a\r\n\r\n'],
    ['a chunk', 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'],
    ['a second request', `${get('/first')}GET HTTP/1.1\r\n\r\n`],
  ])('%s is refused once, with an end to the connection', async (_name, sent) => {
    const client = openClient(port, sent + get('/hidden'))
    await until(client.isClosed)
    expect(client.statuses()).toEqual(sent.includes('first') ? [200, 400] : [400])
    expect(client.text()).toMatch(/\r\nx-request-id: req_[^]*\r\nconnection: close\r\n\r\nmalformed HTTP\/1\.1: .+\n$/)
    expect(client.failure()).toBeUndefined()
  })

  test('a body that breaks after its answer is not answered again', async () => {
    const { port: other } = listen({ answer: () => new Reply(200, {}, Buffer.alloc(16 * 1024 * 1024, 'x')) })
    const client = openClient(other, 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n')
    client.socket.pause()
    await Bun.sleep(50)
    client.socket.write('zz\r\n')
    await Bun.sleep(50)
    client.socket.resume()
    await until(client.isClosed)
    expect(client.statuses()).toEqual([200])
    expect(client.text().length).toBeGreaterThan(16 * 1024 * 1024)
    expect(client.failure()).toBeUndefined()
  })
})
