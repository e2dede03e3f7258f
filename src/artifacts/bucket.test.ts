import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../test/support/gateway.ts'
import { handTimers } from '../../test/support/hand-timers.ts'
import { startTinyS3, type TinyS3 } from '../../test/support/s3.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { openBucketStore } from './bucket.ts'
import { NoRoom, StoreUnreachable, type ArtifactStore } from './store.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'

const mebibyte = 1024 * 1024

let s3: TinyS3
let folder: string
let store: ArtifactStore
let timers: ReturnType<typeof handTimers>

beforeEach(() => {
  timers = handTimers()
  s3 = startTinyS3()
  folder = temporaryFolder('bucket')
  store = openStore()
})
afterEach(() => s3.stop())

const openStore = (more: Partial<Parameters<typeof openBucketStore>[0]> = {}, bytesMax = 64 * mebibyte) =>
  openBucketStore(
    {
      endpoint: s3.endpoint,
      bucket: 'results',
      region: 'eu-test',
      accessKeyId: 'AKTEST',
      secretAccessKey: 'a-secret-for-tests',
      ...more,
    },
    { folder, bytesMax, timers },
  )

/** Bytes whose values tell their position. */
const patterned = (length: number) => Uint8Array.from({ length }, (_, index) => index % 251)
const streamOf = (bytes: Uint8Array) =>
  new Response(bytes as Uint8Array<ArrayBuffer>).body as ReadableStream<Uint8Array>
const ranges = () => s3.seen.flatMap(({ range }) => range ?? [])

async function read(name: string, from: number, to: number): Promise<Uint8Array> {
  const found = await store.find(name)
  if (found === undefined) throw new Error('not found')
  return new Response(await found.read(from, to)).bytes()
}

describe('a result', () => {
  test('a result is put, found and read in parts, and every request is signed', async () => {
    const bytes = patterned(1000)
    expect(await store.put('2027010100/art_a.png', bytes, 'image/png')).toBe(1000)
    expect(s3.objects.get('artifacts/2027010100/art_a.png')).toMatchObject({ type: 'image/png' })
    expect((await store.find('2027010100/art_a.png'))?.bytes).toBe(1000)
    expect(await read('2027010100/art_a.png', 0, 1000)).toEqual(bytes)
    expect(await read('2027010100/art_a.png', 10, 20)).toEqual(bytes.subarray(10, 20))
    expect(s3.seen.at(-1)).toMatchObject({ method: 'GET', range: 'bytes=10-19' })
    for (const { authorization } of s3.seen) {
      expect(authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=AKTEST\/\d{8}\/eu-test\/s3\/aws4_request,/)
      expect(authorization).not.toContain('a-secret-for-tests')
    }
  })

  test('a streamed result is uploaded whole, in parts if large, and leaves nothing on the disk', async () => {
    for (const length of [0, 100, 12 * mebibyte]) {
      const bytes = patterned(length)
      expect(await store.put(`2027010100/${length}.bin`, streamOf(bytes), 'video/mp4')).toBe(length)
      expect(Buffer.compare(s3.objects.get(`artifacts/2027010100/${length}.bin`)?.bytes ?? Buffer.of(1), bytes)).toBe(0)
    }
    expect(s3.seen.filter(({ query }) => query.includes('partNumber=')).length).toBeGreaterThan(1)
    expect(readdirSync(join(folder, 'incoming'))).toEqual([])
  })

  test('a large result is read piece by piece, each after the last was taken', async () => {
    const bytes = patterned(20 * mebibyte)
    await store.put('2027010100/large.mp4', bytes, 'video/mp4')
    const body = await (await store.find('2027010100/large.mp4'))?.read(5, bytes.length)
    if (!(body instanceof ReadableStream)) throw new Error('it is in one piece')
    const reader = body.getReader()
    const first = await reader.read()
    expect(ranges()).toEqual(['bytes=5-8388612'])
    const rest: Uint8Array[] = [first.value ?? Buffer.of()]
    for (let next = await reader.read(); !next.done; next = await reader.read()) rest.push(next.value)
    expect(ranges()).toHaveLength(3)
    expect(Buffer.compare(Buffer.concat(rest), bytes.subarray(5))).toBe(0)
  })

  test('a part that is not as long as the one that was asked for is not taken for it', async () => {
    await store.put('2027010100/art_a.png', patterned(1000), 'image/png')
    const found = await store.find('2027010100/art_a.png')
    s3.objects.set('artifacts/2027010100/art_a.png', { bytes: Buffer.alloc(500), type: 'image/png' })
    expect(await thrownBy(Promise.resolve(found?.read(0, 1000)))).toBeInstanceOf(StoreUnreachable)
  })

  test('a large result that the bucket stops giving breaks off, and does not seem to end', async () => {
    const object = { bytes: Buffer.alloc(8 * mebibyte + 2), type: 'video/mp4' }
    s3.objects.set('artifacts/2027010100/large.mp4', object)
    const body = await (await store.find('2027010100/large.mp4'))?.read(0, object.bytes.length)
    if (!(body instanceof ReadableStream)) throw new Error('it is in one piece')
    const reader = body.getReader()
    expect((await reader.read()).value).toHaveLength(8 * mebibyte)
    s3.objects.set('artifacts/2027010100/large.mp4', { ...object, bytes: object.bytes.subarray(1) })
    expect(
      await reader.read().then(
        ({ done }) => (done ? 'it ended' : 'it went on'),
        () => 'it broke off',
      ),
    ).toBe('it broke off')
  })

  test('a missing result is not found', async () => {
    expect(await store.find('2027010100/nothing.png')).toBeUndefined()
  })

  test('a result whose stream fails never reaches the bucket', async () => {
    const failing = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(patterned(10))
        controller.error(new Error('the vendor broke off'))
      },
    })
    const thrown: unknown = await store.put('2027010100/a.png', failing, 'image/png').catch((error: unknown) => error)
    expect(String(thrown)).toContain('the vendor broke off')
    expect(s3.seen).toEqual([])
  })

  test('a streamed result that does not fit on the disk on its way is refused', async () => {
    store = openStore({}, 1024)
    const thrown: unknown = await store.put('a', streamOf(patterned(1025)), '').catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(NoRoom)
    // Earlier results do not count, because they are in the bucket by now.
    for (const _ of [1, 2, 3]) await store.put('a', streamOf(patterned(1000)), '')
  })
})

describe('a bucket that does not serve', () => {
  test.each([
    ['answers 503', () => s3.failWith(503), {}],
    ['refuses our key', () => {}, { accessKeyId: 'STRANGER' }],
    ['cannot be reached', () => {}, { endpoint: 'http://127.0.0.1:1' }],
  ])('a bucket that %s is reported as overloaded, without its address', async (_name, spoil, more) => {
    store = openStore(more)
    spoil()
    const outcomes = await Promise.allSettled([
      store.put('2027010100/a.png', patterned(10), 'image/png'),
      store.find('2027010100/a.png'),
      store.sweep('2027010100', 10),
    ])
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') throw new Error('it served')
      expect(outcome.reason).toBeInstanceOf(StoreUnreachable)
      expect(outcome.reason).toMatchObject({
        kind: 'overloaded',
        message: 'Kept results cannot be reached at the moment.',
      })
    }
  })
})

describe('a bucket that takes requests and answers none', () => {
  test('an upload times out after a time that depends on its size', async () => {
    s3.hang()
    for (const [bytes, ms] of [
      [0, 30_000],
      [2 * mebibyte, 46_000],
      [3 * mebibyte, 54_000],
    ] as const) {
      const put = store
        .put('2027010100/a.mp4', streamOf(patterned(bytes)), 'video/mp4')
        .catch((error: unknown) => error)
      await until(() => timers.waiting.length > 0)
      expect(timers.waiting).toEqual([ms])
      timers.fire()
      expect(await put).toBeInstanceOf(StoreUnreachable)
    }
    expect(readdirSync(join(folder, 'incoming'))).toEqual([])
  })

  test('an upload that is aborted ends as client-gone', async () => {
    s3.hang()
    const leaving = new AbortController()
    const put = () => thrownBy(store.put('2027010100/a.mp4', patterned(10), 'video/mp4', leaving.signal))
    const left = put()
    await until(() => s3.seen.length > 0)
    leaving.abort()
    for (const thrown of [await left, await put()]) expect(thrown).toMatchObject({ kind: 'client-gone' })
    expect(timers.waiting).toEqual([])
  })
})

test('the sweep deletes the oldest results first, up to its limit, and no other objects', async () => {
  for (const name of ['2027010103/c', '2027010101/a', '2027010102/b', '2027010105/e'])
    await store.put(name, patterned(1), '')
  s3.objects.set('artifacts/notes', { bytes: Buffer.of(1), type: '' })
  s3.objects.set('other/2001010100/x', { bytes: Buffer.of(1), type: '' })
  const left = () => [...s3.objects.keys()].toSorted()
  expect(await store.sweep('2027010104', 2)).toBe('more')
  expect(left()).toEqual(['artifacts/2027010103/c', 'artifacts/2027010105/e', 'artifacts/notes', 'other/2001010100/x'])
  expect(await store.sweep('2027010104', 2)).toBe('done')
  expect(left()).toEqual(['artifacts/2027010105/e', 'artifacts/notes', 'other/2001010100/x'])
})

test('the sweep ends at a server that gives the same page again and again', async () => {
  const page = `<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>artifacts/2025-1/log</Key></Contents></ListBucketResult>`
  let asked = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch() {
      if (++asked > 5) return new Response(null, { status: 500 })
      return new Response(page, { headers: { 'content-type': 'application/xml' } })
    },
  })
  try {
    expect(await openStore({ endpoint: server.url.origin }).sweep('2027010104', 2)).toBe('done')
    expect(asked).toBe(2)
  } finally {
    await server.stop(true)
  }
})

test('the sweep gets past other objects under its prefix', async () => {
  const others = ['', '12/build.zip', ...Array.from({ length: 1100 }, (_, index) => `2025-${index}/log`)]
  for (const name of others) s3.objects.set(`artifacts/${name}`, { bytes: Buffer.of(1), type: '' })
  for (const name of ['2027010101/a', '2027010102/b', '2027010103/c']) await store.put(name, patterned(1), '')
  expect(await store.sweep('2027010104', 2)).toBe('more')
  expect(await store.sweep('2027010104', 2)).toBe('done')
  expect(s3.objects.size).toBe(others.length)
})
