import { expect, test } from 'bun:test'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import { systemClock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { silentLog } from '../base/log.ts'
import { makeChannels } from '../upstream/channels.ts'
import type { Exchange } from '../upstream/transport.ts'
import { compatible } from '../vendors/compatible/compatible.ts'
import { attempt } from './attempt.ts'

const vendor = compatible({ id: 'v', baseUrl: 'https://v' })
const channel = { id: 'c', vendor, baseUrl: 'https://v', credentials: ['key'], weight: 1, priority: 0 }
const route = { channel, credential: 'key', upstreamModel: 'm' }

const failingChannels = () => {
  const channels = makeChannels([channel], systemClock, () => 0)
  for (const request of ['req_1', 'req_2', 'req_3']) channels.failed(route, request)
  return channels
}

/** One call, to which the vendor answers with this exchange. */
function answeredWith(exchange: Exchange, channels = failingChannels()) {
  const parts = {
    transport: { send: () => Promise.resolve({ kind: 'response', exchange }) },
    timeouts: { whole: { totalMs: 1_000 } },
    channels: () => channels,
    log: silentLog,
  }
  const routed = {
    requestId: 'req_4',
    ask: { model: 'm', stream: false },
    route,
    markVendorCalled() {},
    funds: { sending() {} },
    elapsedMs: () => 0,
  }
  return attempt(parts as never, routed as never, {} as never, (from) => from.readAll(1_000))
}

/** Whether a channel that keeps failing still counts as failing after one more call. */
async function isFailingAfter(status: number, ...said: readonly (string | Error)[]): Promise<boolean> {
  const channels = failingChannels()
  await answeredWith(scriptedExchange(status, said), channels)
  return channels.isFailing(channel)
}

test.each([
  { name: 'recovers with an answer', status: 200, said: '{}', isFailing: false },
  { name: 'recovers with a 400', status: 400, said: '{"error":{"message":"no"}}', isFailing: false },
  // Servers built on FastAPI repeat the value that they refuse, however long it is.
  {
    name: 'recovers with a long 400',
    status: 400,
    said: JSON.stringify({ error: { message: 'x'.repeat(70_000) } }),
    isFailing: false,
  },
  {
    name: 'recovers with a 422 that repeats an image',
    status: 422,
    said: JSON.stringify({ detail: [{ msg: 'no', input: 'x'.repeat(2_000_000) }] }),
    isFailing: false,
  },
  { name: 'stays failing after a 503', status: 503, said: '{}', isFailing: true },
  { name: 'stays failing after a long 503', status: 503, said: 'x'.repeat(2_000_000), isFailing: true },
  {
    name: 'stays failing after an answer that breaks off',
    status: 200,
    said: new GatewayError('upstream-failed', 'cut'),
    isFailing: true,
  },
  // Otherwise every client that gives up would bring back a channel that sends a head and then nothing.
  {
    name: 'stays failing when the client leaves before the answer',
    status: 200,
    said: new GatewayError('client-gone', 'left'),
    isFailing: true,
  },
])('a failing channel $name', async ({ status, said, isFailing }) => {
  expect(await isFailingAfter(status, said)).toBe(isFailing)
})

test.each([
  { name: 'that is refused', readAll: () => Promise.reject(new GatewayError('upstream-failed', 'too long')), ends: 1 },
  { name: 'that is accepted', readAll: () => Promise.resolve(new Uint8Array()), ends: 0 },
])('the call for an answer $name is ended $ends times', async ({ readAll, ends }) => {
  let ended = 0
  await answeredWith({ ...scriptedExchange(200, []), readAll, abort: () => void ended++ })
  expect(ended).toBe(ends)
})

test('a request whose time is up is not sent, and owes no vendor anything', async () => {
  const told: string[] = []
  const note = (what: string) => () => void told.push(what)
  const parts = { transport: { send: note('sent') }, timeouts: { whole: { totalMs: 1_000 } } }
  const routed = {
    ask: { model: 'm', stream: false },
    route,
    markVendorCalled: note('called'),
    funds: { sending: note('recorded') },
    elapsedMs: () => 1_000,
  }
  const outcome = await attempt(parts as never, routed as never, {} as never, note('accepted') as never)
  expect(outcome).toMatchObject({ kind: 'failed', error: { kind: 'upstream-timeout' }, retry: 'no', attempts: [] })
  expect(told).toEqual([])
})

/** One call, which `sending` records; tells what happened in which order. */
function recordedBy(sending: () => Promise<void>) {
  const told: string[] = []
  const send = () => {
    told.push('sent')
    return Promise.resolve({ kind: 'response', exchange: scriptedExchange(200, ['{}']) })
  }
  const parts = { transport: { send }, timeouts: { whole: { totalMs: 1_000 } }, channels: failingChannels }
  const routed = {
    ask: { model: 'm', stream: false },
    route,
    markVendorCalled() {},
    funds: {
      async sending() {
        await sending()
        told.push('recorded')
      },
    },
    elapsedMs: () => 0,
  }
  const outcome = attempt(parts as never, routed as never, {} as never, (from) => from.readAll(1_000))
  return { outcome, told }
}

test('a call leaves only once it is recorded', async () => {
  const written = Promise.withResolvers<void>()
  const { outcome, told } = recordedBy(() => written.promise)
  await new Promise((resolve) => setImmediate(resolve))
  expect(told).toEqual([])
  written.resolve()
  expect(await outcome).toMatchObject({ kind: 'accepted' })
  expect(told).toEqual(['recorded', 'sent'])
})

test('a call that cannot be recorded is not made', async () => {
  const full = new GatewayError('overloaded', 'Nothing new can be recorded.')
  const { outcome, told } = recordedBy(() => Promise.reject(full))
  expect(await outcome.catch((thrown: unknown) => thrown)).toBe(full)
  expect(told).toEqual([])
})
