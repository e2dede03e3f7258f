import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { makeGuardedFetch, type FetchLimits } from './guarded-fetch.ts'
import { GuardRefusal, type GuardPolicy } from './untrusted-url.ts'

// All of 127/8 is this machine. In these tests 127.0.0.2 is the public internet, and 127.0.0.1 the inside.
const publicAddress = '127.0.0.2'
const limits: FetchLimits = { bytesMax: 1_024 }

let own: Server
let stranger: Server
let visits = 0

const urlOf = (server: Server) => {
  const { address, port } = server.address() as AddressInfo
  return `http://${address}:${port}`
}
const ownLink = () => `${urlOf(own)}/own`
const isOwn = (link: string) => link === ownLink() || link === `${ownLink()}-moved`

beforeAll(async () => {
  own = createServer(({ url }, response) => {
    visits++
    if (url === '/own-moved') response.writeHead(302, { location: '/own' }).end()
    else response.end('ours')
  })
  stranger = createServer((_request, response) => response.writeHead(302, { location: ownLink() }).end())
  await Promise.all([
    new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve)),
    new Promise<void>((resolve) => stranger.listen(0, publicAddress, resolve)),
  ])
})
afterAll(() => {
  own.close()
  stranger.close()
})

function guard(allowed: Partial<GuardPolicy> = {}) {
  return makeGuardedFetch({ ...allowed, isOwn }, { isPublic: (address) => address === publicAddress })
}

async function reasonOf(work: Promise<unknown>): Promise<string> {
  const thrown = await work.then(
    () => 'it was fetched',
    (error: unknown) => error,
  )
  return thrown instanceof GuardRefusal ? thrown.reason : String(thrown)
}

test('a link of our own is followed inside, over http and to any port', async () => {
  const { status, body } = await guard().get(ownLink(), limits)
  expect([status, Buffer.from(body).toString()]).toEqual([200, 'ours'])
})

test.each(['/other', '/own?', '/own#x'])('a URL that differs from our own link is refused: %s', async (path) => {
  const before = visits
  expect(await reasonOf(guard().get(urlOf(own) + path, limits))).toBe('scheme')
  expect(visits).toBe(before)
})

test('a redirect from another host to our own link is refused', async () => {
  const before = visits
  const open = guard({ schemes: 'https-and-http', ports: 'any' })
  expect(await reasonOf(open.get(`${urlOf(stranger)}/`, limits))).toBe('not-public')
  expect(visits).toBe(before)
})

test('a redirect from our own link is refused, even to another link of our own', async () => {
  const before = visits
  expect(await reasonOf(guard().get(`${ownLink()}-moved`, limits))).toBe('scheme')
  expect(visits).toBe(before + 1)
})
