import { afterEach, describe, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { zeroNano } from '../../src/base/money.ts'
import { compatible } from '../../src/vendors/compatible/compatible.ts'
import { vendors } from '../../src/vendors/index.ts'
import type { Vendor } from '../../src/vendors/vendor.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { visit, type OnRead } from '../support/raw-socket.ts'
import { lastRequestOf } from '../support/records.ts'
import {
  channelsTo,
  chunk,
  done,
  finish,
  flood,
  floodWithWords,
  lastChunk,
  startVendor,
  streamHead,
  usageEvent,
  type RawVendor,
} from '../support/vendor.ts'

let gateway: TestGateway | undefined
let vendor: RawVendor | undefined
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await gateway?.close()
  await vendor?.stop()
  gateway = undefined
  vendor = undefined
})

// More than fits into all buffers between a vendor and a client that does not read.
const floodBytes = 64 * 1024 * 1024
const request = { model: 'm', stream: true, messages: [{ role: 'user', content: 'Hi' }] }

async function come(at: TestGateway, onRead: OnRead, asked: object = request, path?: string) {
  const visitor = await visit(at, onRead, asked, path)
  sockets.push(visitor.socket)
  return visitor
}

/** Stops reading after this many bytes, unless `reads` says that it reads on. */
const stopAt =
  (bytesMax: number, reads: () => boolean = () => false): OnRead =>
  (socket, _bytes, all) => {
    if (all > bytesMax && !reads()) socket.pause()
  }

/** Waits until a number has stayed the same for many turns of the event loop, which the vendor and the client share. */
async function untilStill(number: () => number | undefined): Promise<void> {
  const turnsMin = 100
  for (let [turns, last] = [0, number()]; turns < turnsMin; turns++) {
    await Bun.sleep(1)
    const now = number()
    if (now !== last) turns = 0
    last = now
  }
}

describe.each(['strict', 'leased'] as const)('%s: a client that stops reading its stream', (mode) => {
  test.each([
    ['reading for longer than readerSeconds', 'readerSeconds: 1', 0],
    ['reading until totalSeconds are over', 'totalSeconds: 300, readerSeconds: 600', 300_000],
  ])(
    'a client that stops %s pays for what it was sent, and its hold ends',
    async (_why, timeouts, passingMs) => {
      const clock = movableClock()
      let from: Socket | undefined
      vendor = await startVendor((to) => floodWithWords((from = to), floodBytes))
      const yaml = channelsTo({ v: vendor }, `timeouts: { ${timeouts} }`, 100_000)
      gateway = await startTestGateway({ mode, clock, yaml })
      const before = await gateway.balance()
      let readsOn = false
      const visitor = await come(
        gateway,
        stopAt(200_000, () => readsOn),
      )
      await until(() => visitor.read() > 200_000)
      expect(gateway.openHolds()).toBe(1)
      const { openHolds } = gateway
      // Earlier, the time would be up while the gateway waits for the vendor.
      await untilStill(() => from?.bytesWritten)
      clock.advance(passingMs)
      await until(() => openHolds() === 0)
      // Reads on, to see that the connection was closed.
      readsOn = true
      visitor.socket.resume()
      await until(() => visitor.isClosed())
      await gateway.assertBooks()
      const after = await gateway.balance()
      expect(after.held).toBe(zeroNano)
      expect(before.posted - after.posted).toBeGreaterThan(0n)
      const record = await gateway.store.db.selectFrom('request').select(['status', 'cost']).executeTakeFirstOrThrow()
      expect([record.status, String(record.cost)]).toEqual([499, String(before.posted - after.posted)])
    },
    120_000,
  )
})

test('a client that reads slowly is not cut off', async () => {
  vendor = await startVendor(async (to) => {
    await floodWithWords(to, floodBytes)
    to.write(chunk(finish + usageEvent(7, 52) + done))
    to.write(lastChunk)
  })
  gateway = await startTestGateway({ yaml: channelsTo({ v: vendor }, 'timeouts: { readerSeconds: 2 }', 100_000) })
  const bytesPerMs = 250
  let isInHurry = false
  const slowly: OnRead = (socket, bytes) => {
    if (isInHurry) return
    socket.pause()
    setTimeout(() => socket.resume(), bytes / bytesPerMs)
  }
  const visitor = await come(gateway, slowly)
  await until(() => visitor.read() > 0)
  const { openHolds } = gateway
  // The runtime says nothing for four seconds and more: by that alone the client would count as stopped by then.
  const readUntil = performance.now() + 9_000
  await until(() => performance.now() > readUntil || openHolds() === 0, 15_000)
  expect(openHolds()).toBe(1)
  isInHurry = true
  await until(() => visitor.tail().endsWith(lastChunk) || visitor.isClosed(), 20_000)
  expect(visitor.tail()).toContain('data: [DONE]')
  await gateway.assertBooks()
  expect(await lastRequestOf(gateway, gateway.accountId)).toMatchObject({
    status: 200,
    basis: 'vendor',
    cost: 527_000n,
  })
}, 120_000)

test('no further piece of speech is bought after a client that does not read is cut off', async () => {
  const known = vendors as Map<string, Vendor>
  known.set('drainer', compatible({ id: 'drainer', baseUrl: '', hangup: 'drain', speech: 'common' }))
  try {
    // The first piece is more than fits into all buffers between a vendor and a client that does not read.
    vendor = await startVendor(async (to, { call }) => {
      to.write(streamHead.replace('text/event-stream', 'audio/pcm'))
      await flood(to, chunk(Buffer.alloc(64 * 1024)), call === 1 ? 9 * 1024 * 1024 : 1)
      to.write(lastChunk)
    })
    gateway = await startTestGateway({
      yaml: `
sandbox: false
timeouts: { readerSeconds: 1 }
channels: [{ id: v, vendor: drainer, baseUrl: "${vendor.baseUrl}", keys: [vendor-key] }]
models:
  - id: voice
    capability: speech
    channels: [{ channel: v }]
    speech: { formats: [pcm], charactersMax: 100 }
    prices: { perMillionCharacters: "10" }
`,
    })
    const input = 'A sentence of some fifty characters, more or less. '.repeat(12)
    const asked = { model: 'voice', input, response_format: 'pcm' }
    const visitor = await come(gateway, stopAt(0), asked, '/v1/audio/speech')
    await until(() => visitor.read() > 0)
    const { openHolds } = gateway
    await until(() => openHolds() === 0)
    expect(vendor.requests).toHaveLength(1)
    await gateway.assertBooks()
    const record = await lastRequestOf(gateway, gateway.accountId)
    const said = vendor.requests.map(({ body }) => String(body['input'])).join('')
    expect(record).toMatchObject({ status: 499, usage: { character: said.length } })
  } finally {
    known.delete('drainer')
  }
}, 120_000)
