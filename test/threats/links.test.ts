import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { lines, sendRaw } from '../support/raw-socket.ts'
import { refusedForFree } from '../support/refused.ts'
import { startTinyS3, type TinyS3 } from '../support/s3.ts'
import { errorOf } from '../support/streams.ts'

const clock = movableClock()
let s3: TinyS3
let gateway: TestGateway
/** Keeps its results in a bucket, and has a public URL. */
let second: TestGateway

beforeAll(async () => {
  s3 = startTinyS3()
  const bucket = `endpoint: "${s3.endpoint}", bucket: results, region: eu-test, accessKeyId: AKTEST`
  gateway = await startTestGateway({ clock })
  second = await startTestGateway({
    yaml: `publicUrl: https://public.test/turnpike\nartifacts: { s3: { ${bucket}, secretAccessKey: "\${CANARY}" } }`,
    variables: { CANARY: 'canary-of-the-bucket' },
  })
})
afterEach(async () => {
  for (const each of [gateway, second]) await each.assertBooks()
})
afterAll(async () => {
  // Who has a signature has the result: none may stand in a log, nor may the bucket's key.
  for (const each of [gateway, second]) expect(each.logged.join('')).not.toMatch(/signature=|canary/)
  await gateway.close()
  await second.close()
  await s3.stop()
})

const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => index % 251)
const keep = (of: TestGateway, mediaType = 'image/png', result: Uint8Array = bytes) =>
  of.artifacts.keep(result, { mediaType, accountId: of.accountId })
/** The same link at the gateway's own address. */
const local = (of: TestGateway, url: string) => of.url + url.slice(url.indexOf('/artifacts/'))

/** Refused, free of charge, in the shape of every other error. */
async function refused(url: string, init: RequestInit = {}) {
  const answer = await refusedForFree(gateway, () => fetch(url, init))
  expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
  return errorOf(answer)
}

describe('a kept result', () => {
  test('a result is served to any holder of its link, with headers that forbid active content', async () => {
    const { url } = await keep(gateway)
    expect(url).toStartWith(`${gateway.url}/artifacts/`)
    const answer = await fetch(url)
    expect(answer.status).toBe(200)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'image/png',
      'content-length': '300000',
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'referrer-policy': 'no-referrer',
      'content-disposition': expect.stringMatching(/^inline; filename="art_[0-9a-f]{32}\.png"$/),
      'cache-control': expect.stringMatching(/^private, max-age=86[34]\d\d$/),
    })
    expect(await answer.bytes()).toEqual(bytes)
  })

  test.each(['text/html', 'image/svg+xml', 'application/pdf', 'text/html\r\nset-cookie: a=b'])(
    'a result of type %j is served as a download of plain bytes',
    async (mediaType) => {
      const answer = await fetch((await keep(gateway, mediaType, Buffer.from('<script>alert(1)</script>'))).url)
      expect(answer.headers.get('content-type')).toBe('application/octet-stream')
      expect(answer.headers.get('content-disposition')).toMatch(/^attachment; filename="art_[0-9a-f]{32}\.bin"$/)
      expect(answer.headers.get('set-cookie')).toBeNull()
    },
  )
})

describe('ranges and storage of a result', () => {
  const places = [
    ['disk', () => gateway],
    ['bucket', () => second],
  ] as const

  test.each(places)('ranges, HEAD and conditional requests are answered from the %s', async (_name, of) => {
    const url = local(of(), (await keep(of())).url)
    const ask = async (headers: Record<string, string>, method = 'GET') => {
      const answer = await fetch(url, { method, headers })
      const { status } = answer
      const length = answer.headers.get('content-length')
      return { status, length, range: answer.headers.get('content-range'), body: await answer.bytes() }
    }
    const whole = { status: 200, length: '300000', range: null, body: bytes }
    expect(await ask({})).toEqual(whole)
    const part = (from: number, to: number) => ({
      status: 206,
      length: String(to - from),
      range: `bytes ${from}-${to - 1}/300000`,
      body: bytes.slice(from, to),
    })
    expect(await ask({ range: 'bytes=0-0' })).toEqual(part(0, 1))
    expect(await ask({ range: 'bytes=100-199' })).toEqual(part(100, 200))
    expect(await ask({ range: 'bytes=299990-' })).toEqual(part(299_990, 300_000))
    expect(await ask({ range: 'bytes=-10' })).toEqual(part(299_990, 300_000))
    expect(await ask({ range: 'bytes=299999-999999' })).toEqual(part(299_999, 300_000))
    // A range that is invalid or of another version is answered with the whole result.
    for (const range of ['bytes=0-1,5-6', 'bytes=5-1', 'bytes=a-b', 'items=0-1'])
      expect(await ask({ range })).toEqual(whole)
    expect(await ask({ range: 'bytes=0-0', 'if-range': '"another"' })).toEqual(whole)
    expect(await ask({}, 'HEAD')).toEqual({ ...whole, body: new Uint8Array() })
    for (const range of ['bytes=0-0', 'bytes=999999999-']) {
      expect(await ask({ range }, 'HEAD')).toEqual({ ...whole, body: new Uint8Array() })
    }
    const etag = (await fetch(url)).headers.get('etag') ?? ''
    expect((await ask({ range: 'bytes=0-0', 'if-range': etag })).status).toBe(206)
    // A proxy that compresses makes an ETag weak, and a cache may send several.
    for (const known of [etag, `"other", W/${etag}`, '*']) {
      expect((await ask({ 'if-none-match': known })).status).toBe(304)
    }
    expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200)
  })

  test('a range beyond the end is a 416 that states the length', async () => {
    const { url } = await keep(gateway)
    const answer = await fetch(url, { headers: { range: 'bytes=300000-' } })
    expect(answer.headers.get('content-range')).toBe('bytes */300000')
    expect(await errorOf(answer)).toMatchObject({ status: 416, code: 'range_not_satisfiable' })
  })

  test('a large result from the bucket is streamed whole', async () => {
    const large = new Uint8Array(9 * 1024 * 1024).fill(3)
    const { url } = await keep(second, 'video/mp4', large)
    expect(url).toStartWith('https://public.test/turnpike/artifacts/')
    const answer = await fetch(local(second, url))
    expect(Buffer.compare(await answer.bytes(), large)).toBe(0)
    expect((await fetch(local(second, url), { method: 'HEAD' })).headers.get('content-length')).toBe(
      String(large.length),
    )
  })

  test('a failing bucket is a 503 that does not name it', async () => {
    const { url } = await keep(second)
    s3.failWith(503)
    const answer = await fetch(local(second, url))
    const text = await answer.clone().text()
    s3.failWith(0)
    expect(await errorOf(answer)).toMatchObject({ status: 503, code: 'artifacts_unreachable' })
    expect(text).not.toContain(new URL(s3.endpoint).host)
    expect((await fetch(local(second, url))).status).toBe(200)
  })
})

describe('the validity of a link', () => {
  test('a link changed in any part is refused without saying what exists', async () => {
    const { url } = await keep(gateway)
    const { url: elsewhere } = await keep(gateway)
    const id = /art_[0-9a-f]{32}/.exec(url)?.[0] ?? ''
    const expires = Number(new URL(url).searchParams.get('expires'))
    const bad = [
      url.replace(id, /art_[0-9a-f]{32}/.exec(elsewhere)?.[0] ?? ''),
      url.replace(id, `art_${'0'.repeat(32)}`),
      url.replace('.png', '.mp4'),
      url.replace(`expires=${expires}`, `expires=${expires + 3600}`),
      url
        .replace(`expires=${expires}`, `expires=${expires}&expires=${expires + 3600}`)
        .replace(/signature=./, 'signature='),
      url.replace(/signature=.*/, ''),
      url.replace(/signature=.*/, 'signature='),
      url.replace(/expires=\d+&/, ''),
      url.replace(/\?.*/, ''),
      `${url}x`,
      url.replace(/.$/, ''),
      // Other installations, and other uses of this one's secret, sign differently.
      `${gateway.url}/artifacts/${new URL((await keep(second)).url).pathname.split('/').at(-1)}?expires=1&signature=a`,
    ]
    const answers = await Promise.all(bad.map((each) => fetch(each)))
    for (const answer of answers) {
      expect(await errorOf(answer)).toEqual({
        status: 403,
        message: 'This link was not made by this gateway, or was changed since.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_link',
      })
    }
    expect((await fetch(url)).status).toBe(200)
  })

  test.each([
    '..%2f..%2fsecret',
    '%2e%2e%2fsecret',
    '..%5c..%5csecret',
    'secret',
    '%00',
    'incoming',
    '2027010100%2fart',
  ])('a link to %s is refused', async (id) => {
    const error = await refused(`${gateway.url}/artifacts/${id}?expires=99999999999&signature=${'a'.repeat(43)}`)
    expect(error.status).toBe(403)
    const answer = await sendRaw(
      gateway.url,
      lines(`GET /artifacts/${id} HTTP/1.1`, `Host: ${new URL(gateway.url).host}`),
    )
    expect([400, 403, 404]).toContain(answer.status)
  })

  test('a link is a 405 for other methods', async () => {
    const { url } = await keep(gateway)
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const answer = await fetch(url, { method })
      expect(answer.headers.get('allow')).toBe('GET, HEAD')
      expect(await errorOf(answer)).toMatchObject({ status: 405, code: 'method_not_supported' })
    }
    expect((await fetch(url)).status).toBe(200)
  })

  // Moves the clock, and so comes last.
  test('a link works for 24 hours and is refused afterwards', async () => {
    const day = clock.now() + 24 * 3_600_000
    const { url, expiresAt } = await keep(gateway)
    expect(expiresAt).toBeWithin(day - 1_000, day + 60_000)
    clock.advance(expiresAt - clock.now() - 5_000)
    expect((await fetch(url)).status).toBe(200)
    clock.advance(5_000)
    expect(await refused(url)).toMatchObject({ status: 403, code: 'link_expired', param: null })
    expect(readdirSync(join(gateway.folder, 'artifacts')).length).toBeGreaterThan(0)
  })
})
