import { expect, test } from 'bun:test'
import { thrownBy } from '../../test/support/thrown.ts'
import { makeGuardedFetch } from '../base/guarded-fetch.ts'
import { LinkTime } from './link-time.ts'
import { makeFetchLink, type FetchLink } from './links.ts'

const channel = { baseUrl: 'https://vendor.example' }
const link = { transport: 'guarded', url: 'https://h/a', bytesMax: 5 } as const
const { signal } = new AbortController()
const file = { mediaType: 'image/png', body: Uint8Array.of(1), header: () => null }
const tooSlow = { kind: 'bad-request', reason: 'too-slow', details: { code: 'invalid_url' } }

/** A clock that the test moves, and links that arrive when the test says so. */
function begin(totalMs: number) {
  let now = 0
  const arriving: (() => void)[] = []
  const slow: FetchLink = async (_link, _channel, late) => {
    late.throwIfAborted()
    return new Promise((arrive) => arriving.push(() => arrive(file)))
  }
  const fetch = new LinkTime(totalMs).bound(slow, () => now)
  return {
    pass: (ms: number) => void (now += ms),
    get: (transport: 'guarded' | 'linked' = 'guarded') => fetch({ ...link, transport }, channel, signal),
    arrive: () => arriving.shift()?.(),
  }
}

test('links one after another share the time, and what passes between them does not count', async () => {
  const { pass, get, arrive } = begin(100_000)
  for (let links = 0; links < 2; links++) {
    const fetched = get()
    pass(50_000)
    arrive()
    expect(await fetched).toBe(file)
    if (links === 0) pass(1_000_000)
  }
  expect(await thrownBy(get())).toMatchObject(tooSlow)
})

test('links side by side use up the time once', async () => {
  const { pass, get, arrive } = begin(100_000)
  const together = [get(), get(), get()]
  for (const fetched of together) {
    pass(33_000)
    arrive()
    expect(await fetched).toBe(file)
  }
  const last = get()
  pass(1_000)
  arrive()
  expect(await last).toBe(file)
  expect(await thrownBy(get())).toMatchObject(tooSlow)
})

test("the time of a client's links does not bound a link of the vendor", async () => {
  const { get, arrive } = begin(0)
  expect(await thrownBy(get())).toMatchObject(tooSlow)
  const fetched = get('linked')
  arrive()
  expect(await fetched).toBe(file)
})

test('a server that keeps us waiting beyond the time is reported as too slow', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise<Response>(() => {}) })
  try {
    const local = makeGuardedFetch({ schemes: 'https-and-http', ports: 'any', addresses: 'loopback' })
    const fetch = new LinkTime(30).bound(makeFetchLink(local), () => performance.now())
    const url = `http://127.0.0.1:${server.port}/a`
    const asked = { ...link, url, at: 'image' }
    for (const _ of ['too late', 'without any time left']) {
      const thrown = await thrownBy(fetch(asked, channel, signal))
      expect(thrown).toMatchObject({ kind: 'bad-request', details: { code: 'invalid_url', param: 'image' } })
      expect(String(thrown)).toContain('did not answer in time')
    }
  } finally {
    await server.stop(true)
  }
})
