import { expect, test } from 'bun:test'
import { standingClock } from '../../test/support/movable-clock.ts'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import { silentLog } from '../base/log.ts'
import { makeChannels, type Channel } from '../upstream/channels.ts'
import { compatible } from '../vendors/compatible/compatible.ts'
import { judge, makeCall } from './calls.ts'

const vendor = compatible({ id: 'v', baseUrl: 'https://v' })
const route = { credential: 'key', upstreamModel: 'film-1' }
const channel: Channel = { id: 'c', vendor, baseUrl: 'https://v', credentials: ['key'], weight: 1, priority: 0 }

/** What a client is told when a vendor refuses its order with this in `Retry-After`. */
function toldAfter(retryAfter: (now: number) => string): number | undefined {
  const clock = standingClock(1_800_000_000_000)
  const channels = makeChannels([channel], clock, () => 0)
  const header = (name: string) => (name === 'retry-after' ? retryAfter(clock.now()) : null)
  const answered = { kind: 'answered', status: 429, header, body: Buffer.of() } as const
  return judge({ channels: () => channels, clock, log: silentLog }, { ...route, channel }, answered).error.details
    .retryAfterSeconds
}

test('Retry-After of a video vendor is read in seconds or as a date, and otherwise as one second', () => {
  expect(toldAfter(() => '20')).toBe(20)
  expect(toldAfter(() => '2.5')).toBe(2.5)
  expect(toldAfter((now) => new Date(now + 120_000).toUTCString())).toBe(120)
  // An unusable value counts as none, for which the wait is one second.
  expect([toldAfter(() => 'soon'), toldAfter((now) => new Date(now - 120_000).toUTCString())]).toEqual([1, 1])
})

test('an order that is refused at great length, because its images are repeated, is refused and not in doubt', async () => {
  const exchange = scriptedExchange(422, [JSON.stringify({ detail: [{ msg: 'no', input: 'x'.repeat(9_000_000) }] })])
  const clock = standingClock()
  const channels = makeChannels([channel], clock, () => 0)
  const parts = { transport: { send: () => Promise.resolve({ kind: 'response', exchange }) } }
  const answered = await makeCall(parts as never, { url: 'https://v/tasks', headers: {} }, {} as never)
  if (answered.kind === 'failed') throw answered.error
  const { error } = judge({ channels: () => channels, clock, log: silentLog }, { ...route, channel }, answered)
  expect(error).toMatchObject({ kind: 'upstream-rejected', details: { refusal: { status: 422 } } })
})
