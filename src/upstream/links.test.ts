import { expect, test } from 'bun:test'
import { makeGuardedFetch, type FetchLimits, type GuardedFetch } from '../base/guarded-fetch.ts'
import { makeFetchLink } from './links.ts'

const vendor = { baseUrl: 'https://vendor.example' }
const { signal } = new AbortController()

test("a client's link is fetched with the time limits of the guarded fetch", async () => {
  const asked: FetchLimits[] = []
  const strangers: GuardedFetch = {
    check: async () => {},
    async get(_url, limits) {
      asked.push(limits)
      return { status: 200, mediaType: 'image/png', body: Uint8Array.of(1) }
    },
    post: () => Promise.reject(new Error('a link is only fetched')),
  }
  const fetchLink = makeFetchLink(strangers)
  const link = { transport: 'guarded', url: 'https://h/a.png', bytesMax: 5 } as const
  expect(await fetchLink(link, vendor, signal)).toMatchObject({ mediaType: 'image/png' })
  expect(asked).toEqual([{ bytesMax: 5, signal }])
})

test("a vendor's link into a private network is followed for simulators only", async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('film') })
  try {
    const fetchLink = makeFetchLink(makeGuardedFetch())
    const link = { transport: 'linked', url: `http://127.0.0.1:${server.port}/a.mp4`, bytesMax: 5 } as const
    const named = { baseUrl: 'http://simulators.example:9090' }
    const { body } = await fetchLink(link, { ...named, isSimulator: true }, signal)
    expect(new TextDecoder().decode(body)).toBe('film')
    const refused = await fetchLink(link, named, signal).catch(String)
    expect(refused).toContain('could not be fetched')
  } finally {
    await server.stop(true)
  }
})

test("a vendor's link with a time limit of its own is given up after that time", async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise<Response>(() => {}) })
  try {
    const url = `http://127.0.0.1:${server.port}/a.mp4`
    const link = { transport: 'linked', url, bytesMax: 5, totalMs: 50 } as const
    const local = { baseUrl: 'http://127.0.0.1:1' }
    const thrown: unknown = await makeFetchLink(makeGuardedFetch())(link, local, signal).catch((error) => error)
    expect(thrown).toMatchObject({ kind: 'upstream-failed', details: { cause: { reason: 'too-slow' } } })
  } finally {
    await server.stop(true)
  }
})

test("a client that leaves while a vendor's link is fetched is not the vendor's failure", async () => {
  const asked = Promise.withResolvers<void>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch() {
      asked.resolve()
      return new Promise<Response>(() => {})
    },
  })
  try {
    const client = new AbortController()
    const link = { transport: 'linked', url: `http://127.0.0.1:${server.port}/a.png`, bytesMax: 5 } as const
    const local = { baseUrl: 'http://127.0.0.1:1' }
    const fetched = makeFetchLink(makeGuardedFetch())(link, local, client.signal)
    await asked.promise
    client.abort()
    expect(await fetched.catch((error: unknown) => error)).toMatchObject({ kind: 'client-gone' })
  } finally {
    await server.stop(true)
  }
})
