import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { until } from '../support/gateway.ts'
import { isTold, startOwnGateway, type OwnGateway } from '../support/own-gateway.ts'
import { visit, type OnRead } from '../support/raw-socket.ts'
import { says } from '../support/streams.ts'
import { channelsTo, floodWithWords, lastChunk, startVendor, type RawVendor } from '../support/vendor.ts'

// O-03: a hundred clients that are sent a hundred megabytes each and do not read them. The gateway has a process of its
// own: its memory is seen from outside. What a single one of them pays is in test/faults/stalled-reader.test.ts.

const crowd = 100
const mebibyte = 1024 * 1024
const answerBytes = 100 * mebibyte
/**
 * Of each stays what the runtime reads of a vendor's socket in one or two goes, 0.8 MiB as measured; what went through
 * before waits for the collector, another two or three.
 */
const growthBytesMax = crowd * 6 * mebibyte
const slowMs = 600_000

let vendor: RawVendor
let gateway: OwnGateway
const sockets: Socket[] = []

beforeAll(async () => {
  if (!isTold) return
  vendor = await startVendor((socket) => floodWithWords(socket, answerBytes))
  gateway = await startOwnGateway(channelsTo({ v: vendor }, 'timeouts: { readerSeconds: 3 }', 100_000))
}, slowMs)
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway?.close()
  await vendor?.stop()
})

const stopAtFirst: OnRead = (socket, bytes, all) => {
  if (bytes === all) socket.pause()
}

/** Asks for a stream, and stops reading as soon as it has begun. */
async function openAndStop(): Promise<{ readonly hasBegun: () => boolean; readonly isCut: () => Promise<boolean> }> {
  const at = { url: gateway.url, key: gateway.key ?? '' }
  const visitor = await visit(at, stopAtFirst, says('Hello!', { model: 'm', stream: true }))
  sockets.push(visitor.socket)
  return {
    hasBegun: () => visitor.read() > 0,
    async isCut() {
      visitor.socket.resume()
      await until(visitor.isClosed, slowMs)
      return !visitor.tail().endsWith(lastChunk)
    },
  }
}

async function ask<T>(path: string): Promise<T> {
  const response = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${gateway.key}` } })
  return (await response.json()) as T
}

type Records = { readonly data: readonly { readonly status: number; readonly cost: string }[] }

const settled = async () => (await ask<Records>('/v1/usage?records=true&limit=100')).data

test.skipIf(!isTold)(
  'clients that do not read are cut off and charged, and memory stays bounded',
  async () => {
    const first = await openAndStop()
    await until(async () => (await settled()).length === 1, slowMs)
    expect(await first.isCut()).toBe(true)
    const before = gateway.residentBytes()

    const visitors = await Promise.all(Array.from({ length: crowd - 1 }, openAndStop))
    await until(() => visitors.every(({ hasBegun }) => hasBegun()), slowMs)
    const most = await gateway.peakBytesOf(() => until(async () => (await settled()).length === crowd, slowMs))
    expect(most - before).toBeLessThan(growthBytesMax)
    expect(await Promise.all(visitors.map(({ isCut }) => isCut()))).toEqual(visitors.map(() => true))
    await until(async () => Number((await ask<{ held: string }>('/v1/balance')).held) === 0)
    for (const { status, cost } of await settled()) {
      expect(status).toBe(499)
      expect(Number(cost)).toBeGreaterThan(0)
    }
  },
  slowMs,
)
