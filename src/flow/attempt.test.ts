import { expect, test } from 'bun:test'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import { systemClock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { silentLog } from '../base/log.ts'
import { makeChannels } from '../upstream/channels.ts'
import { compatible } from '../vendors/compatible/compatible.ts'
import { attempt } from './attempt.ts'

const vendor = compatible({ id: 'v', baseUrl: 'https://v' })
const channel = { id: 'c', vendor, baseUrl: 'https://v', credentials: ['key'], weight: 1, priority: 0 }
const route = { channel, credential: 'key', upstreamModel: 'm' }

/** Whether a channel that keeps failing still counts as failing after one more call. */
async function isFailingAfter(status: number, ...said: readonly (string | Error)[]): Promise<boolean> {
  const channels = makeChannels([channel], systemClock, () => 0)
  for (const request of ['req_1', 'req_2', 'req_3']) channels.failed(route, request)
  const parts = {
    transport: { send: () => Promise.resolve({ kind: 'response', exchange: scriptedExchange(status, said) }) },
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
  await attempt(parts as never, routed as never, {} as never, (exchange) => exchange.readAll(1_000))
  return channels.isFailing(channel)
}

test.each([
  { name: 'recovers with an answer', status: 200, said: '{}', isFailing: false },
  { name: 'recovers with a 400', status: 400, said: '{"error":{"message":"no"}}', isFailing: false },
  { name: 'stays failing after a 503', status: 503, said: '{}', isFailing: true },
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
