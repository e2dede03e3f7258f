import { afterAll, describe, expect, test } from 'bun:test'
import { closeAll, listen, openClient, until, type Client } from '../../../test/support/http-server.ts'
import { Spliced } from '../spliced.ts'
import type { PushedBody, Sink } from './pushed-body.ts'
import { Reply, type HttpResponse } from './reply.ts'
import type { HttpRequest } from './request.ts'

afterAll(closeAll)

type Way = (request: HttpRequest) => HttpResponse | Promise<HttpResponse>

/** What is asked of a path is answered by the function of that name; `next` is always answered. */
function listenWith(ways: Record<string, Way>) {
  return listen({
    answer(request) {
      const way = ways[new URL(request.url).pathname.slice(1)]
      return way === undefined ? new Reply(200, {}, Buffer.from('next')) : way(request)
    },
  })
}

const ask = (path: string, method = 'GET', version = '1.1') => `${method} /${path} HTTP/${version}\r\nhost: a\r\n\r\n`

/** Sends a request, and another one once the first is answered or the connection closed. */
async function askThenNext(answers: Way, method = 'GET'): Promise<Client> {
  const { port } = listenWith({ first: answers })
  const client = openClient(port, ask('first', method))
  await until(() => client.text().includes('\r\n\r\n') || client.isClosed())
  client.socket.write(ask('next'))
  await until(() => client.text().endsWith('next') || client.isClosed())
  return client
}

/** A body that does what is given when it may begin. */
function pushing(begin: (sink: Sink) => void): PushedBody & { readonly told: string[] } {
  const told: string[] = []
  return { begin, told, drained: () => told.push('drained'), left: () => told.push('left') }
}

const bytes = (text: string) => Buffer.from(text)
const headOf = ({ text }: Client) => text().slice(0, text().indexOf('\r\n\r\n'))
const streamed = (...texts: string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const text of texts) controller.enqueue(bytes(text))
      controller.close()
    },
  })
const failing = (...texts: string[]) => {
  const left = [...texts]
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const text = left.shift()
      if (text === undefined) controller.error(new Error('it broke'))
      else controller.enqueue(bytes(text))
    },
  })
}

function raise(): never {
  throw new Error('no')
}

describe('a mistake of the code behind the server is a 500, and the connection goes on', () => {
  const unspeakable = { 'x-name': 'a\r\nx-other: b' }
  const used = new Response('used')
  test.each<[what: string, answers: Way]>([
    ['it throws', () => raise()],
    ['it rejects', () => Promise.reject(new Error('no'))],
    ['it answers with a header that no header may have', () => new Reply(200, unspeakable, bytes('a'))],
    ['it does so later', () => Promise.resolve(new Reply(200, unspeakable, bytes('a')))],
    [
      'it streams with such a header',
      () =>
        new Reply(
          200,
          unspeakable,
          pushing(() => {}),
        ),
    ],
    ['its document breaks off', () => new Response(failing('{'), { headers: { 'content-type': 'application/json' } })],
    [
      'its body was read before',
      async () => {
        await used.text()
        return used
      },
    ],
  ])('%s', async (_what, answers) => {
    const client = await askThenNext(answers)
    expect(client.statuses()).toEqual([500, 200])
    expect(client.text()).not.toContain('x-other')
    expect(client.failure()).toBeUndefined()
  })
})

test('a mistake is logged with its stack', async () => {
  const logged: object[] = []
  const { port } = listen({ answer: () => raise(), log: { error: (fields: object) => void logged.push(fields) } })
  const client = openClient(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  await until(() => client.statuses().length > 0)
  expect(client.statuses()).toEqual([500])
  expect(logged).toEqual([{ cause: expect.stringContaining('Error: no\n') }])
})

test('a stream whose head cannot be written is told that nobody reads it', async () => {
  const body = pushing(() => {})
  await askThenNext(() => Promise.resolve(new Reply(200, { 'x-name': '\n' }, body)))
  expect(body.told).toEqual(['left'])
})

test('a stream that fails as it begins is cut off, and not answered a second time', async () => {
  const body = pushing((sink) => {
    sink.write(bytes('begun'))
    throw new Error('no')
  })
  const client = await askThenNext(() => new Reply(200, {}, body))
  await until(client.isClosed)
  expect(client.text()).not.toContain('500')
  expect(client.text()).not.toContain('0\r\n\r\n')
  expect(body.told).toEqual(['left'])
})

describe('a stream that is written as it begins', () => {
  test('it is sent whole, and the connection goes on', async () => {
    const client = await askThenNext(
      () =>
        new Reply(
          200,
          {},
          pushing((sink) => {
            sink.write(bytes('one'))
            sink.write(new Uint8Array())
            sink.write(bytes('two'))
            sink.end()
          }),
        ),
    )
    expect(client.text()).toContain(
      '\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\nHTTP/1.1 200',
    )
  })

  test('what it writes after its end goes nowhere', async () => {
    const sinks: Sink[] = []
    const body = pushing((sink) => {
      sinks.push(sink)
      sink.write(bytes('one'))
      sink.end()
      sink.write(bytes('late'))
      sink.end()
      sink.cut()
    })
    const client = await askThenNext(() => new Reply(200, {}, body))
    for (const sink of sinks) sink.write(bytes('later'))
    expect(client.statuses()).toEqual([200, 200])
    expect(client.text()).not.toContain('late')
  })

  test('it may have nothing in it', async () => {
    const client = await askThenNext(
      () =>
        new Reply(
          200,
          {},
          pushing((sink) => sink.end()),
        ),
    )
    expect(client.text()).toContain('\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200')
  })
})

const said = (body: ReadableStream<Uint8Array>) => new Response(body, { headers: { 'content-length': '5' } })

describe('a body that is not as long as its head says', () => {
  test('the rest of a longer one is not taken for the next answer', async () => {
    for (const texts of [
      ['12345', 'HTTP/1.1 200 OK\r\n\r\n'],
      ['123', '45HTTP/1.1 200 OK\r\n\r\n'],
      ['12345HTTP/1.1 200 OK\r\n\r\n'],
    ]) {
      const client = await askThenNext(() => said(streamed(...texts)))
      await until(client.isClosed)
      expect(client.text().match(/HTTP\/1\.1/g)?.length ?? 0).toBeLessThan(2)
    }
  })

  test('a shorter one is cut off', async () => {
    const client = await askThenNext(() => said(streamed('123')))
    await until(client.isClosed)
    expect(client.text()).toEndWith('\r\n\r\n123')
  })
})

test('a stream that breaks off ends without its last chunk, and the client has what came before', async () => {
  const client = await askThenNext(() => new Response(failing('one', 'two')))
  await until(client.isClosed)
  expect(client.text()).toEndWith('3\r\none\r\n3\r\ntwo\r\n')
  expect(client.statuses()).toEqual([200])
})

describe('an answer to HEAD has no body, and says no length but that of the body', () => {
  const document = { headers: { 'content-type': 'application/json' } }
  const stream = pushing(() => {})
  test.each<[what: string, answers: Way, length: string | undefined]>([
    ['a whole reply', () => new Reply(200, {}, bytes('12345')), '5'],
    ['a pushed reply', () => new Reply(200, {}, stream), undefined],
    ['a response without a body', () => new Response(null), '0'],
    ['one that says how long it would be', () => new Response(null, { headers: { 'content-length': '7' } }), '7'],
    ['a stream with a length', () => new Response(streamed('123'), { headers: { 'content-length': '3' } }), '3'],
    ['a stream', () => new Response(streamed('123')), undefined],
    ['a document', () => new Response(streamed('[]'), document), '2'],
  ])('%s', async (_what, answers, length) => {
    const client = await askThenNext(answers, 'HEAD')
    expect(client.statuses()).toEqual([200, 200])
    expect(/\r\ncontent-length: (\d+)/.exec(headOf(client))?.[1]).toBe(length)
    expect(headOf(client)).not.toContain('transfer-encoding')
    expect(client.text().slice(headOf(client).length)).toStartWith('\r\n\r\nHTTP/1.1 200')
    expect(stream.told.length).toBeLessThan(2)
  })
})

describe('a status that has no body', () => {
  test.each<[what: string, answers: Way]>([
    ['204', () => new Reply(204, {}, bytes('12345'))],
    ['304', () => new Reply(304, { etag: '"a"' }, bytes('12345'))],
    [
      '204, pushed',
      () =>
        new Reply(
          204,
          {},
          pushing((sink) => sink.write(bytes('no'))),
        ),
    ],
    ['204 of the web', () => new Response(null, { status: 204 })],
  ])('%s', async (_what, answers) => {
    const client = await askThenNext(answers)
    expect(headOf(client)).not.toMatch(/content-length|transfer-encoding/)
    expect(client.text().slice(headOf(client).length)).toStartWith('\r\n\r\nHTTP/1.1 200')
  })
})

describe('how the connection goes on after an answer', () => {
  test.each<[request: string, head: RegExp, stays: boolean]>([
    ['GET / HTTP/1.1\r\nhost: a\r\n\r\n', /^(?!.*connection:)/s, true],
    ['GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n', /connection: close/, false],
    ['GET / HTTP/1.1\r\nhost: a\r\nconnection: x, Close\r\n\r\n', /connection: close/, false],
    ['GET / HTTP/1.1\r\nhost: a\r\nconnection: x\r\nconnection: close\r\n\r\n', /connection: close/, false],
    ['GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n', /^(?!.*connection:)/s, true],
    ['GET / HTTP/1.0\r\nhost: a\r\n\r\n', /connection: close/, false],
    ['GET / HTTP/1.0\r\nhost: a\r\nconnection: Keep-Alive\r\n\r\n', /connection: keep-alive/, true],
    ['GET / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive, close\r\n\r\n', /connection: close/, false],
    ['POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n', /connection: close/, false],
    ['POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc', /^(?!.*connection:)/s, true],
  ])('%j', async (request, head, stays) => {
    const { port } = listenWith({})
    const client = openClient(port, request)
    await until(() => client.text().endsWith('next') || client.isClosed())
    expect(headOf(client)).toMatch(head)
    if (stays) {
      client.socket.write(ask('next'))
      await until(() => client.statuses().length === 2)
    } else await until(client.isClosed)
    expect(client.failure()).toBeUndefined()
  })

  test('a stream to a client that knows no chunks ends with the connection', async () => {
    const { port } = listenWith({ stream: () => new Response(streamed('one', 'two')) })
    const client = openClient(port, 'GET /stream HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n')
    await until(client.isClosed)
    expect(headOf(client)).not.toContain('transfer-encoding')
    expect(client.text()).toEndWith('\r\nconnection: close\r\n\r\nonetwo')
  })

  test('events with a part replaced come whole to a client that knows no chunks', async () => {
    const event = new Spliced(Buffer.from('the cat sat. '), 4, 7, Buffer.from('tiger'))
    const body = {
      begin(sink: Sink) {
        for (let i = 0; i < 3; i++) sink.write(event)
        sink.end()
      },
      drained() {},
      left() {},
    }
    const { port } = listenWith({ stream: () => new Reply(200, {}, body) })
    const client = openClient(port, 'GET /stream HTTP/1.0\r\nhost: a\r\n\r\n')
    await until(client.isClosed)
    expect(client.text()).toEndWith(`\r\n\r\n${'the tiger sat. '.repeat(3)}`)
  })

  test('such a stream that breaks off does not end as if it were whole', async () => {
    const { port } = listenWith({ stream: () => new Response(failing('one', 'two')) })
    const client = openClient(port, 'GET /stream HTTP/1.0\r\nhost: a\r\n\r\n')
    await until(client.isClosed)
    expect(client.failure()).toBeDefined()
  })
})

test('the code behind the server does not decide how an answer is framed', async () => {
  const headers = { 'content-length': '1', 'transfer-encoding': 'chunked', connection: 'close', date: 'today' }
  const client = await askThenNext(() => new Reply(200, headers, bytes('12345')))
  expect(headOf(client)).toMatch(/content-length: 5\r\nconnection: close$/)
  expect(headOf(client)).not.toContain('transfer-encoding')
  expect(headOf(client).match(/\r\ndate: /g)).toHaveLength(1)
})
