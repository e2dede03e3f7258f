import { expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { makeGuardedFetch, type FetchLimits, type GuardedFetch } from '../base/guarded-fetch.ts'
import type { Channel } from './channels.ts'
import { isInside, makeFetchLink } from './links.ts'

const vendor = { baseUrl: 'https://vendor.example' }
const { signal } = new AbortController()
/** For a client's link, this machine is part of the internet. */
const near = { schemes: 'https-and-http', ports: 'any', addresses: 'loopback' } as const

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

test.each([
  [
    "a client's link says which field had it and what it answered",
    'guarded',
    'bad-request',
    "Invalid 'input.image': the URL answered 404.",
  ],
  [
    "a vendor's link is a failure of the vendor",
    'linked',
    'upstream-failed',
    "The result of the model's vendor could not be fetched.",
  ],
] as const)('a failed fetch of %s', async (_, transport, kind, message) => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('gone', { status: 404 }) })
  try {
    const fetchLink = makeFetchLink(makeGuardedFetch(near))
    const link = { transport, url: `http://127.0.0.1:${server.port}/a.png`, bytesMax: 5, at: 'input.image' }
    const thrown: unknown = await fetchLink(link, { baseUrl: 'http://127.0.0.1:1' }, signal).catch((error) => error)
    expect(thrown).toMatchObject({ kind, message })
    if (transport === 'guarded')
      expect(thrown).toMatchObject({ details: { code: 'invalid_url', param: 'input.image' } })
  } finally {
    await server.stop(true)
  }
})

test.each(['guarded', 'linked'] as const)(
  'a stop ends the fetch of a link (%s) for its own reason',
  async (transport) => {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise<Response>(() => {}) })
    try {
      const [stop, reason] = [new AbortController(), new GatewayError('overloaded', 'The gateway is stopping.')]
      const fetchLink = makeFetchLink(makeGuardedFetch(near), stop.signal)
      const link = { transport, url: `http://127.0.0.1:${server.port}/a.png`, bytesMax: 5, at: 'input.image' }
      const fetched = fetchLink(link, { baseUrl: 'http://127.0.0.1:1' }, signal).catch((error: unknown) => error)
      stop.abort(reason)
      expect(await fetched).toBe(reason)
    } finally {
      await server.stop(true)
    }
  },
)

test("a vendor's link into a private network is followed for simulators and for vendors inside one", async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('film') })
  try {
    const fetchLink = makeFetchLink(makeGuardedFetch())
    const link = { transport: 'linked', url: `http://127.0.0.1:${server.port}/a.mp4`, bytesMax: 5 } as const
    const named = { baseUrl: 'http://simulators.example:9090' }
    const inside = [
      'http://localai:8080/v1',
      'https://models.internal/v1',
      'http://models.svc.cluster.local.',
      'http://localhost:1',
      'http://[::1]:1',
    ]
    for (const channel of [{ ...named, isSimulator: true } as const, ...inside.map((baseUrl) => ({ baseUrl }))]) {
      const { body } = await fetchLink(link, channel, signal)
      expect([channel.baseUrl, new TextDecoder().decode(body)]).toEqual([channel.baseUrl, 'film'])
    }
    for (const channel of [named, vendor, { baseUrl: 'http://8.8.8.8:1' }]) {
      const refused = await fetchLink(link, channel, signal).catch(String)
      expect(refused).toContain('could not be fetched')
    }
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

// A server on the operator's own network is sent the files behind a client's links, and any other one the links.
test.each([
  ['https://models.internal/v1', true],
  ['http://models.svc.cluster.local.', true],
  ['http://[::1]:1', true],
  ['https://api.vendor.example/v1', false],
  ['https://api.vendor.example./v1', false],
])('a channel at %s is on the network of its operator: %p', (baseUrl, expected) => {
  expect(isInside({ baseUrl } as Channel)).toBe(expected)
  expect(isInside({ baseUrl, isSimulator: true } as Channel)).toBe(false)
})
