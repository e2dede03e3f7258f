import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { certificate, certificateKey } from '../../test/support/certificate.ts'
import { freePort } from '../../test/support/free-port.ts'
import { listenAlike } from '../../test/support/listen-alike.ts'
import { GatewayError } from './errors.ts'
import { makeGuardedFetch, type FetchLimits, type Outside } from './guarded-fetch.ts'
import { GuardRefusal } from './untrusted-url.ts'

// All of 127/8 is this machine. In these tests 127.0.0.2 is the public internet, and 127.0.0.1 must stay unreachable.
const publicAddress = '127.0.0.2'
const insideAddress = '127.0.0.1'
const isPublic = (address: string) => address === publicAddress
const limits: FetchLimits = { bytesMax: 64 * 1024 }

type Seen = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & { body: string }

const seen: Seen[] = []
let insideVisits = 0
let open: Server
let inside: Server
let secure: ReturnType<typeof createSecureServer>

const moved = Promise.withResolvers<void>()

function writeEndlessly(response: ServerResponse): void {
  const write = () => {
    while (!response.destroyed && response.write(Buffer.alloc(16 * 1024)));
  }
  response.on('drain', write)
  write()
}

const listener: RequestListener = (request, response) => {
  const chunks: Uint8Array[] = []
  request.on('data', (chunk: Uint8Array) => chunks.push(chunk))
  request.on('end', () => {
    const { method, url = '', headers } = request
    seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
    const target = new URL(url, 'http://x').searchParams
    switch (new URL(url, 'http://x').pathname) {
      case '/to':
        return response
          .writeHead(Number(target.get('status') ?? 302), { location: target.get('url') ?? '' })
          .end('moved')
      case '/loop':
        return response.writeHead(302, { location: `/loop?${Number(url.split('?')[1] ?? 0) + 1}` }).end()
      case '/many':
        return response.writeHead(200).end(Buffer.alloc(100_000))
      case '/endless':
        return writeEndlessly(response)
      case '/moved-endlessly':
        response.on('close', moved.resolve)
        return writeEndlessly(response.writeHead(302, { location: '/' }))
      case '/drip':
        return response.write('a')
      case '/cut':
        response.writeHead(200, { 'content-length': '100' }).write('a')
        return setImmediate(() => request.socket.destroy())
      case '/gzip':
        return response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('a'))
      case '/headers':
        return response.writeHead(200, { x: 'y'.repeat(64 * 1024) }).end()
      case '/gone':
        return response.writeHead(410, { 'content-length': '11' }).end('never again')
      default:
        return response.writeHead(200, { 'content-type': 'Image/PNG; charset=x', 'set-cookie': 'a=b' }).end('hello')
    }
  })
}

const portOf = (server: { address(): AddressInfo | string | null }) => (server.address() as AddressInfo).port

beforeAll(async () => {
  open = createServer(listener)
  inside = createServer((_request, response) => response.end('secret'))
  inside.on('connection', () => insideVisits++)
  // Both use the same port, so that only the address decides where a request arrives.
  await listenAlike([open, publicAddress], [inside, insideAddress])
  secure = createSecureServer({ key: certificateKey, cert: certificate }, listener)
  await new Promise<void>((resolve) => secure.listen(0, publicAddress, resolve))
})
afterAll(() => {
  expect(insideVisits).toBe(0)
  for (const server of [open, inside, secure]) server.close()
})

const resolver = (...answers: readonly (readonly string[])[]) => {
  let calls = 0
  return {
    resolve: () => Promise.resolve(answers[calls++ % answers.length] ?? []),
    count: () => calls,
  }
}

const plain = { schemes: 'https-and-http', ports: 'any' } as const
const guard = (world: Partial<Outside> = {}) =>
  makeGuardedFetch(plain, { isPublic, resolve: resolver([publicAddress]).resolve, ...world })
const at = (path: string, host = 'site.test') => `http://${host}:${portOf(open)}${path}`
const to = (url: string, status = 302) => at(`/to?status=${status}&url=${encodeURIComponent(url)}`)
const loops = () => seen.filter(({ url }) => url?.startsWith('/loop')).length
const neverAnswers = () => new Promise<never>(() => {})
const secured = (host: string, ca?: string) =>
  guard(ca === undefined ? {} : { ca }).get(`https://${host}:${portOf(secure)}/`, limits)

async function refusal(work: Promise<unknown>): Promise<string> {
  const thrown = await work.then(
    () => 'it was fetched',
    (error: unknown) => error,
  )
  if (!(thrown instanceof GuardRefusal)) throw new Error(`not refused: ${String(thrown)}`)
  expect(thrown).toMatchObject({ kind: 'bad-request', details: { code: 'invalid_url' } })
  // The message must hold no digits, because a client must not learn which addresses exist inside.
  expect(thrown.message).toMatch(/^\D+\.$/)
  return thrown.reason
}

describe('the check of a URL by its text alone', () => {
  const nobody = { resolve: () => Promise.reject(new Error('it was looked up')) }
  const check = (url: string) => refusal(makeGuardedFetch({}, nobody).check(url))

  test.each([
    ['scheme', ['http://site.test/', 'ftp://site.test/', 'file:///etc/passwd', 'data:text/plain,a', 'javascript:1']],
    ['credentials', ['https://user@site.test/', 'https://user:pass@site.test/', 'https://:pass@site.test/']],
    ['port', ['https://site.test:22/', 'https://site.test:8443/', 'https://site.test:6379/', 'https://1.1.1.1:1/']],
    ['malformed', ['', 'site.test', '/path', '//site.test', 'https://', 'https://site.test.', 'https://localhost.']],
    [
      'malformed',
      ['https://a b/', 'https://site.test/\n', '\thttps://site.test/', 'https://site.test/\u0000', 'https://a\tb/'],
    ],
    [
      'malformed',
      ['https://[fe80::1%25eth0]/', 'https://[::1', 'https://1.2.3.4.5/', `https://site.test/${'a'.repeat(9_000)}`],
    ],
    // The URL parser reads all of these as addresses of this machine; no honest client spells one like that.
    ['malformed', ['https://0x7f000001', 'https://2130706433', 'https://127.1', 'https://0177.0.0.1', 'https://0']],
    [
      'malformed',
      ['https://①②⑦.⓪.⓪.①', 'https://127.0.0.1.', 'https://0x08080808', 'https://8.8.8.8./', 'https:8.8.8.8'],
    ],
    ['malformed', ['https:8.8.8.8//8.8.8.8', 'https:/8.8.8.8//8.8.8.8', 'https:///8.8.8.8']],
    ['not-public', ['https://127.0.0.1', 'https://0.0.0.0', 'https://10.0.0.1', 'https://169.254.169.254/latest']],
    ['not-public', ['https://168.63.129.16', 'https://100.64.0.1', 'https://192.168.0.1', 'https://255.255.255.255']],
    ['not-public', ['https://[::1]', 'https://[::]', 'https://[::ffff:127.0.0.1]', 'https://[::ffff:7f00:1]']],
    [
      'not-public',
      ['https://[64:ff9b::7f00:1]', 'https://[2002:7f00:1::]', 'https://[2001:0:53aa::1]', 'https://[fec0::1]'],
    ],
    ['not-public', ['https://[fe80::1]', 'https://[fd00:ec2::254]', 'https://[ff02::1]', 'https://[::7f00:1]']],
  ])('the URL is refused before any lookup as %s: %j', async (reason, urls) => {
    for (const url of urls) expect({ url, reason: await check(url) }).toEqual({ url, reason })
  })

  test.each(['https://8.8.8.8/', 'https://100.128.0.1/', 'https://[2606:4700::1111]/', 'https://1.1.1.1:80/'])(
    'a public address on an allowed port is not refused: %s',
    async (url) => {
      await makeGuardedFetch({}, nobody).check(url)
    },
  )
})

describe('a host name', () => {
  test.each([
    ['an internal address', [insideAddress]],
    ['a public and an internal address', [publicAddress, insideAddress]],
    ['an internal and a public address', [insideAddress, publicAddress]],
    ['an IPv4-mapped loopback address', ['::ffff:127.0.0.2']],
    ['a link-local address', ['fe80::1%eth0']],
  ])('a name that resolves to %s is refused', async (_name, addresses) => {
    const { resolve } = resolver(addresses)
    expect(await refusal(guard({ resolve }).check(at('/')))).toBe('not-public')
    expect(await refusal(guard({ resolve }).get(at('/'), limits))).toBe('not-public')
    expect(await refusal(guard({ resolve }).post(at('/'), { headers: {}, body: '' }, limits))).toBe('not-public')
  })

  test('an unresolvable name is refused with the same message as one that resolves inside', async () => {
    const messages: string[] = []
    for (const resolve of [
      () => Promise.reject(new Error('ENOTFOUND')),
      () => Promise.resolve([]),
      () => Promise.resolve([insideAddress]),
      neverAnswers,
    ]) {
      const thrown = await guard({ resolve })
        .get(at('/'), { ...limits, ...(resolve === neverAnswers && { connectMs: 20 }) })
        .catch((error: unknown) => error)
      messages.push((thrown as GuardRefusal).message)
    }
    expect(new Set(messages)).toEqual(new Set(['The host in the URL cannot be reached.']))
  })

  test('localhost is refused when the system resolves it', async () => {
    for (const name of ['localhost', 'LOCALHOST']) {
      expect(await refusal(makeGuardedFetch(plain).get(`http://${name}:${portOf(inside)}/`, limits))).toMatch(
        /^(?:not-public|unresolved)$/,
      )
    }
  })

  test('localhost is accepted under the loopback policy when the system resolves it', async () => {
    await makeGuardedFetch({ ...plain, addresses: 'loopback' }).check('http://localhost/')
  })

  test('a name is looked up once per fetch, and the address that was checked is dialled', async () => {
    const flipping = resolver([publicAddress], [insideAddress])
    const fetches = Array.from({ length: 200 }, () => guard({ resolve: flipping.resolve }).get(at('/'), limits))
    const outcomes = await Promise.allSettled(fetches)
    expect(flipping.count()).toBe(200)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(100)
    expect(insideVisits).toBe(0)
  })

  test('a name whose lookup never ends is refused after the connect timeout', async () => {
    const resolve = neverAnswers
    expect(await refusal(guard({ resolve }).get(at('/'), { ...limits, connectMs: 20 }))).toBe('lookup-slow')
    expect(await refusal(guard({ resolve }).check(at('/'), { connectMs: 20 }))).toBe('lookup-slow')
  })

  test('a lookup that is refused as overloaded fails with that error, not as a bad URL', async () => {
    const full = new GatewayError('overloaded', 'full')
    const outside = guard({ resolve: () => Promise.reject(full) })
    expect(await outside.get(at('/'), limits).catch((thrown: unknown) => thrown)).toBe(full)
    expect(await outside.check(at('/')).catch((thrown: unknown) => thrown)).toBe(full)
  })
})

describe('a guarded request', () => {
  test('a GET sends only a fixed set of headers, and no fragment', async () => {
    const fetched = await guard().get(at('/picture?a=b#fragment'), limits)
    expect(fetched).toMatchObject({ status: 200, mediaType: 'image/png' })
    expect(Buffer.from(fetched.body).toString()).toBe('hello')
    expect(seen.at(-1)).toEqual({
      method: 'GET',
      url: '/picture?a=b',
      headers: {
        accept: '*/*',
        'user-agent': 'turnpike',
        host: `site.test:${portOf(open)}`,
        'accept-encoding': 'identity',
        connection: 'close',
      },
      body: '',
    })
  })

  test('a GET sends no cookie back and ignores the proxy variables of the environment', async () => {
    const before = { ...process.env }
    const proxy = `http://${insideAddress}:${portOf(inside)}`
    Object.assign(process.env, { HTTP_PROXY: proxy, http_proxy: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy })
    try {
      for (const _ of [1, 2]) await guard().get(at('/'), limits)
    } finally {
      for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY']) {
        if (before[name] === undefined) delete process.env[name]
        else process.env[name] = before[name]
      }
    }
    expect(seen.at(-1)?.headers['cookie']).toBeUndefined()
  })

  test('a POST sends its headers and body, and returns the first bytes of the response', async () => {
    const message = { headers: { 'webhook-id': 'msg_1', 'content-type': 'application/json' }, body: '{"ä":1}' }
    expect(await guard().post(at('/gone'), message, { bytesMax: 5 })).toEqual({
      status: 410,
      mediaType: '',
      body: Buffer.from('never'),
    })
    expect(seen.at(-1)).toMatchObject({
      method: 'POST',
      headers: { 'webhook-id': 'msg_1', 'content-length': '8', 'content-type': 'application/json' },
      body: '{"ä":1}',
    })
    expect((await guard().post(at('/endless'), message, { bytesMax: 1024 })).body).toHaveLength(1024)
    expect((await guard().post(at('/gzip'), message, limits)).status).toBe(200)
  })

  test.each(['/cut', '/drip'])('a POST succeeds once its response begins, even if it is cut: %s', async (path) => {
    const { status, body } = await guard().post(at(path), { headers: {}, body: '{}' }, { ...limits, totalMs: 5_000 })
    expect({ status, body: body.toString() }).toEqual({ status: 200, body: 'a' })
  })

  test.each(['Authorization', 'cookie', 'Proxy-Authorization'])('a POST that sets %s fails as a bug', async (name) => {
    const sent = guard().post(at('/'), { headers: { [name]: 'x' }, body: '' }, limits)
    expect(await sent.catch((thrown: unknown) => thrown)).toMatchObject({ kind: 'bug' })
  })
})

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])('a %d is followed to a public address, and a 2xx is not', async (status) => {
    expect((await guard().get(to('/relative', status - 100), limits)).status).toBe(status - 100)
    expect((await guard().get(to(at('/', 'other.test'), status), limits)).status).toBe(200)
    expect((await guard().get(to('/relative', status), limits)).status).toBe(200)
    expect(seen.at(-1)?.url).toBe('/relative')
  })

  test.each([
    ['not-public', () => `http://${insideAddress}:${portOf(inside)}/`],
    ['not-public', () => `http://[::ffff:${insideAddress}]:${portOf(inside)}/`],
    ['malformed', () => `http://2130706433:${portOf(inside)}/`],
    ['not-public', () => `//${insideAddress}:${portOf(inside)}/`],
    ['credentials', () => at('/').replace('//', '//user@')],
    ['scheme', () => 'file:///etc/passwd'],
    ['malformed', () => 'http://['],
  ])('%s: the target of a redirect is checked like the first URL', async (reason, url) => {
    expect(await refusal(guard().get(to(url()), limits))).toBe(reason)
  })

  test('a redirect to a name that by then resolves inside is refused', async () => {
    const { resolve } = resolver([publicAddress], [insideAddress])
    expect(await refusal(guard({ resolve }).get(to(at('/')), limits))).toBe('not-public')
  })

  test('at most three redirects are followed, or as many as the caller allows', async () => {
    expect(await refusal(guard().get(at('/loop'), limits))).toBe('redirects')
    expect(loops()).toBe(4)
    expect(await refusal(guard().get(at('/loop'), { ...limits, redirectsMax: 0 }))).toBe('redirects')
    expect(loops()).toBe(5)
  })

  test('the body of a redirect is abandoned once its target is known', async () => {
    expect((await guard().get(at('/moved-endlessly'), limits)).status).toBe(200)
    await moved.promise
  })

  test('a redirect in response to a POST is returned and not followed', async () => {
    const count = seen.length
    const { status } = await guard().post(to(at('/')), { headers: {}, body: 'a' }, limits)
    expect(status).toBe(302)
    expect(seen.length).toBe(count + 1)
  })
})

describe('limits', () => {
  test.each([
    ['too-large', '/many', {}],
    ['too-large', '/endless', {}],
    ['too-slow', '/drip', { totalMs: 50 }],
    ['broken', '/cut', {}],
    ['compressed', '/gzip', {}],
    ['unreachable', '/headers', {}],
  ])('a GET is refused as %s: %s', async (reason, path, more) => {
    expect(await refusal(guard().get(at(path), { ...limits, ...more }))).toBe(reason)
  })

  test('a body of the largest allowed size is fetched, and one a byte larger is refused', async () => {
    expect((await guard().get(at('/'), { bytesMax: 5 })).body).toHaveLength(5)
    expect(await refusal(guard().get(at('/'), { bytesMax: 4 }))).toBe('too-large')
  })

  test('a refused connection is reported as unreachable', async () => {
    expect(await refusal(guard().get(`http://site.test:${await freePort()}/`, limits))).toBe('unreachable')
  })

  test('an aborted fetch fails as client-gone', async () => {
    for (const signal of [AbortSignal.abort(), AbortSignal.timeout(20)]) {
      const thrown = await guard()
        .get(at('/drip'), { ...limits, signal })
        .catch((error: unknown) => error)
      expect(thrown).toBeInstanceOf(GatewayError)
      expect(thrown).toMatchObject({ kind: 'client-gone' })
    }
  })
})

describe('over TLS', () => {
  test('the certificate is checked against the host name of the URL', async () => {
    expect((await secured('guard.test', certificate)).status).toBe(200)
    expect(await refusal(secured('stranger.test', certificate))).toBe('unreachable')
  })

  test('an untrusted certificate is refused even under NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    try {
      expect(await refusal(secured('guard.test'))).toBe('unreachable')
    } finally {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
    }
  })

  test('a redirect must not fall back to plain http', async () => {
    const only = makeGuardedFetch(
      { ports: 'any' },
      { isPublic, resolve: resolver([publicAddress]).resolve, ca: certificate },
    )
    const url = `https://guard.test:${portOf(secure)}/to?url=${encodeURIComponent(at('/'))}`
    expect(await refusal(only.get(url, limits))).toBe('scheme')
  })
})
