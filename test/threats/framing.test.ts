import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { lines, openSocket, sendRaw } from '../support/raw-socket.ts'
import { refusedForFree } from '../support/refused.ts'
import { says } from '../support/streams.ts'

let gateway: TestGateway
let host: string

beforeAll(async () => {
  gateway = await startTestGateway({ yaml: 'limits: { chatBodyBytesMax: 1048576 }' })
  host = new URL(gateway.url).host
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const body = JSON.stringify(says('Hello!'))
const authorization = () => `Authorization: Bearer ${gateway.key}`
const get = (target: string, ...headers: string[]) => lines(`GET ${target} HTTP/1.1`, ...headers)
const post = (...headers: string[]) =>
  lines(
    'POST /v1/chat/completions HTTP/1.1',
    `Host: ${host}`,
    authorization(),
    'Content-Type: application/json',
    ...headers,
  )

//
describe('an invalid Host header', () => {
  test.each([
    { name: 'a Host with a path and a fragment', hosts: ['localhost:4000/#@evil'] },
    { name: 'a Host with a path', hosts: ['a/healthz?'] },
    { name: 'a Host with a user', hosts: ['user@localhost'] },
    { name: 'a Host with a space', hosts: ['a b'] },
    { name: 'an empty Host', hosts: [''] },
    { name: 'a second Host', hosts: ['localhost', 'evil'] },
    { name: 'a missing Host', hosts: [] },
  ])('$name is refused before any route is looked up', async ({ hosts }) => {
    for (const target of ['/v1/models', '/healthz']) {
      const headers = hosts.map((name) => `Host: ${name}`)
      const answer = await sendRaw(gateway.url, get(target, ...headers, authorization()))
      expect(answer.status).toBe(400)
      expect(answer.text).not.toContain('"status":"ok"')
      expect(answer.text).not.toContain('gpt-4o')
    }
  })
})

// A-05, and no mistake of ours, which a 500 would say it is.
test.each(['256.256.256.256', 'localhost:99999', '[::::]'])(
  'a Host that no URL can have makes no difference: %s',
  async (name) => {
    for (const target of ['/artifacts/x?expires=1', '/v1/usage?group_by=day', '/v1/videos/generations?limit=1']) {
      const statusWith = async (hostname: string) =>
        (await sendRaw(gateway.url, get(target, `Host: ${hostname}`, authorization()))).status
      expect(await statusWith(name)).toBe(await statusWith(host))
    }
  },
)

// A path is what the client wrote: nothing is folded, so that no spelling but its own leads to a route.
describe('request targets in odd spellings', () => {
  test.each([
    '//v1/models',
    '///v1/models',
    '/v1//models',
    '/v1/%2e%2e/admin',
    '/v1/..%2f..%2fadmin',
    '/v1/models/..;/admin',
    '/v1/models%00',
    '/v1/models;x',
    '/v1%2fmodels',
    '/V1/models',
    '/v1/models/',
    '/v1/%6dodels',
    '/v1/models%20',
    '/admin/../admin/keys',
    '/healthz/../v1/models',
    '/healthz/%2e%2e/v1/models',
    '/./v1/./models',
    '/v1\\models',
    '/v1/models#/healthz',
    'http://evil/v1/models',
    'http://evil:1/v1/models',
  ])('%s is refused, even with a key', async (target) => {
    const answer = await refusedForFree(gateway, () =>
      sendRaw(gateway.url, get(target, `Host: ${host}`, authorization())),
    )
    expect([400, 404]).toContain(answer.status)
    expect(answer.text).not.toContain('gpt-4o')
  })

  test('a query does not lead to another path', async () => {
    const target = '/v1/models?/../../healthz'
    const answer = await refusedForFree(gateway, () => sendRaw(gateway.url, get(target, `Host: ${host}`)))
    expect(answer.status).toBe(401)
  })
})

//
describe('framing that could be read two ways', () => {
  const chunkedEnd = '0\r\n\r\n'
  const cases = {
    'a Content-Length beside chunks': () => post('Content-Length: 5', 'Transfer-Encoding: chunked') + chunkedEnd,
    'a second Content-Length': () => post('Content-Length: 5', `Content-Length: ${body.length}`) + body,
    'a list of lengths in one Content-Length': () => post(`Content-Length: 5, ${body.length}`) + body,
    'an unknown transfer encoding': () => post('Transfer-Encoding: xchunked') + chunkedEnd,
    'another encoding after chunked': () => post('Transfer-Encoding: chunked, identity') + chunkedEnd,
    'a head with bare line feeds': () => post(`Content-Length: ${body.length}`).replaceAll('\r\n', '\n') + body,
    'a header with a space before its colon': () => get('/v1/models', `Host : ${host}`, authorization()),
    'a folded header': () => get('/v1/models', `Host: ${host}`, 'X-Folded: a', '  b', authorization()),
    'a signed length': () => post(`Content-Length: +${body.length}`) + body,
    'a negative length': () => post('Content-Length: -1') + body,
    'a length in hex': () => post(`Content-Length: 0x${body.length.toString(16)}`) + body,
    'a length with a space': () => post('Content-Length: 7 1') + body,
    'a chunk size that is not hexadecimal': () => `${post('Transfer-Encoding: chunked')}zz\r\nabc\r\n${chunkedEnd}`,
    'a chunk size of 17 digits': () => `${post('Transfer-Encoding: chunked')}fffffffffffffffff\r\nabc\r\n${chunkedEnd}`,
    'a request line without a version': () => 'GET /v1/models\r\n\r\n',
    'a request line with HTTP/2.0': () => lines('GET /v1/models HTTP/2.0', `Host: ${host}`),
    'a target with a zero byte': () => get('/v1/models\0', `Host: ${host}`, authorization()),
  } satisfies Record<string, () => string>

  test.each(Object.entries(cases))('%s is refused, and the connection closed', async (_name, request) => {
    const answer = await refusedForFree(gateway, () => sendRaw(gateway.url, request(), { wantsClose: true }))
    expect(answer.status).toBeWithin(400, 506)
    expect(answer.closed).toBe(true)
    expect(answer.text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  })

  test('the body of a refused request is not read as the next request', async () => {
    const hidden = get('/healthz', `Host: ${host}`)
    const request =
      lines(
        'POST /v1/chat/completions HTTP/1.1',
        `Host: ${host}`,
        'Authorization: Bearer sk-nobody',
        'Content-Type: application/json',
        `Content-Length: ${hidden.length}`,
      ) + hidden
    await refusedForFree(gateway, async () => {
      const socket = await openSocket(gateway.url)
      const closed = new Promise((resolve) => socket.on('close', resolve))
      let text = ''
      socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')))
      const statuses = () => text.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []
      socket.write(request)
      await until(() => statuses().length > 0)
      // Anything that is still unanswered would be answered before this.
      socket.write(get('/nowhere', `Host: ${host}`, 'Connection: close'))
      await closed
      expect(statuses()).toEqual(['401', '404'])
      expect(text).not.toContain('"status":"ok"')
    })
  })
})

// Most clients write on without reading: to them, and to proxies in front, an answer in the middle of their request is
// a broken connection, or leaves one behind on which the rest of the body and the next request run into each other.
describe('a request refused while its body is still being sent', () => {
  const sizes = { declared: (bytes: number) => `Content-Length: ${bytes}`, chunked: () => 'Transfer-Encoding: chunked' }
  const json = ['Content-Type: application/json']
  const form = ['Content-Type: multipart/form-data; boundary=b']
  const twice = ['n', 'n'].map((name) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n1\r\n`).join('')
  const cases = [
    { name: 'a body beyond the limit', path: '/v1/chat/completions', said: json, sized: 'declared', status: 413 },
    {
      name: 'a bad key',
      path: '/v1/chat/completions',
      said: [...json, 'Authorization: Bearer sk-nobody'],
      status: 401,
    },
    {
      name: 'a bad key, in chunks',
      path: '/v1/messages',
      said: ['X-Api-Key: sk-nobody'],
      sized: 'chunked',
      status: 401,
    },
    { name: 'a body of another type', path: '/v1/embeddings', said: ['Content-Type: text/plain'], status: 415 },
    { name: 'an unknown path', path: '/v1/nothing', said: json, status: 404 },
    { name: 'an unknown callback', path: '/callbacks/video/nothing', said: json, status: 404 },
    { name: 'a form with an early mistake', path: '/v1/images/edits', said: form, start: twice, status: 400 },
  ] as const

  test.each(cases)('the refusal waits for the end of the body: $name', async (one) => {
    const { path, said, status, sized = 'declared', start = '' } = { sized: undefined, start: undefined, ...one }
    const piece = Buffer.alloc(64 * 1024, 'a')
    const pieces = 40
    const key = said.some((header) => /^(?:authorization|x-api-key)/i.test(header)) ? [] : [authorization()]
    const head = [`POST ${path} HTTP/1.1`, `Host: ${host}`, sizes[sized](start.length + piece.length * pieces)]
    const framed = (bytes: Buffer) =>
      sized === 'chunked' ? Buffer.concat([Buffer.from('10000\r\n'), bytes, Buffer.from('\r\n')]) : bytes
    await refusedForFree(gateway, async () => {
      const socket = await openSocket(gateway.url)
      let text = ''
      let failure: Error | undefined
      socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')))
      socket.on('error', (error) => (failure = error))
      const write = (bytes: Buffer | string) => new Promise((resolve) => socket.write(bytes, resolve))
      await write(lines(...head, ...key, ...said) + start)
      for (let sent = 0; sent < pieces; sent++) {
        // A request of another client between any two pieces leaves time for an answer that comes too soon.
        expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
        expect({ sent, text, failure }).toEqual({ sent, text: '', failure: undefined })
        await write(framed(piece))
      }
      if (sized === 'chunked') await write('0\r\n\r\n')
      await until(() => text.includes('\r\n\r\n') || failure !== undefined)
      expect(failure).toBeUndefined()
      expect(text).toStartWith(`HTTP/1.1 ${status} `)
      socket.destroy()
    })
  })

  test('a declared terabyte is not waited for, and the refusal closes the connection', async () => {
    const request = lines('POST /v1/messages HTTP/1.1', `Host: ${host}`, 'Content-Length: 1000000000000')
    const answer = await sendRaw(gateway.url, request + body, { wantsClose: true })
    expect(answer).toMatchObject({ status: 401, closed: true })
  })
})

const headers = (count: number) => Array.from({ length: count }, (_, index) => `X-${index}: a`)
const withHeaders = (...more: string[]) =>
  sendRaw(gateway.url, get('/v1/models', `Host: ${host}`, authorization(), ...more))

// B-02, B-09, B-10
describe('requests that are too large or too slow', () => {
  test('a header of ten megabytes is cut off', async () => {
    const big = get('/v1/models', `Host: ${host}`, `X-Big: ${'a'.repeat(10 * 1024 * 1024)}`)
    const answer = await sendRaw(gateway.url, big, { wantsClose: true })
    expect(answer.status).toBe(431)
    expect(answer.closed).toBe(true)
  })

  test('headers beyond sixteen kilobytes, and hundreds of headers, are a 431', async () => {
    expect((await withHeaders(`X-Long: ${'a'.repeat(15 * 1024)}`, ...headers(20))).status).toBe(200)
    for (const refused of [[`X-Long: ${'a'.repeat(16 * 1024)}`], headers(200), headers(3_000)]) {
      expect(await withHeaders(...refused)).toMatchObject({ status: 431, closed: true })
    }
  })

  test('more than a hundred headers are a 431', async () => {
    expect((await withHeaders(...headers(98))).status).toBe(200)
    for (const count of [99, 150, 190]) {
      expect({ count, status: (await withHeaders(...headers(count))).status }).toEqual({ count, status: 431 })
    }
  })

  test('a body declared as a terabyte is refused before it is read', async () => {
    const request = post('Content-Length: 1000000000000') + body
    const answer = await refusedForFree(gateway, () => sendRaw(gateway.url, request, { wantsClose: true }))
    expect(answer).toMatchObject({ status: 413, closed: true })
    expect(answer.text).toContain('request_too_large')
  })

  test('an endless chunked body is refused at the limit', async () => {
    await refusedForFree(gateway, async () => {
      const socket = await openSocket(gateway.url)
      let text = ''
      let closed = false
      socket.on('data', (bytes: Buffer) => {
        text += bytes.toString('latin1')
      })
      socket.on('close', () => {
        closed = true
      })
      socket.on('error', () => {})
      socket.write(post('Transfer-Encoding: chunked'))
      const piece = Buffer.from(`10000\r\n${'a'.repeat(0x10000)}\r\n`)
      let sent = 0
      await until(async () => {
        if (text !== '' || closed) return true
        sent += piece.length
        await new Promise((resolve) => socket.write(piece, resolve))
        return false
      })
      await until(() => text !== '')
      socket.destroy()
      expect(text).toStartWith('HTTP/1.1 413')
      // The limit is one megabyte; the rest is what the sockets' own buffers had taken by then.
      expect(sent).toBeLessThan(16 * 1024 * 1024)
    })
  })

  test('hundreds of heads and bodies that drip in are cut off while others are served', async () => {
    const dripping = 400
    const slow: { socket: Socket; text: string; isClosed: boolean; isBody: boolean }[] = []
    for (let at = 0; at < dripping; at++) {
      const isBody = at % 2 === 0
      const socket = await openSocket(gateway.url)
      const one = { socket, text: '', isClosed: false, isBody }
      socket.on('error', () => {})
      socket.on('data', (bytes: Buffer) => {
        one.text += bytes.toString('latin1')
      })
      socket.on('close', () => {
        one.isClosed = true
      })
      const length = body.length + (at % 4 === 0 ? 1_000 : 1_000_000) // small bodies are read in another way
      socket.write(isBody ? post(`Content-Length: ${length}`) : `GET /healthz HTTP/1.1\r\nHost: ${host}`)
      slow.push(one)
    }
    const drip = setInterval(() => {
      for (const { socket, isClosed } of slow) if (!isClosed) socket.write(' ')
    }, 1_000)
    try {
      // A body has ten seconds and a head twelve; other clients get their answers meanwhile.
      const giveUpAt = performance.now() + 90_000
      let served = 0
      const isOver = () => slow.every(({ isClosed }) => isClosed)
      while (!isOver() || served <= 50) {
        if (performance.now() > giveUpAt) throw new Error('some that drip are still served')
        expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
        served++
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    } finally {
      clearInterval(drip)
      for (const { socket } of slow) socket.destroy()
    }
    for (const { text, isBody } of slow) {
      if (isBody) expect(text).toMatch(/^HTTP\/1\.1 400 [^]*connection: close\r\n[^]*"body_too_slow"/i)
      else expect(text).toBe('')
    }
  }, 120_000)
})
