import { expect, test } from 'bun:test'
import { thrownBy } from '../../test/support/thrown.ts'
import { badRequest, GatewayError } from '../base/errors.ts'
import { systemClock } from '../base/clock.ts'
import { makeChannels, type Channel } from '../upstream/channels.ts'
import type { PassedOver } from '../upstream/nobody-serves.ts'
import { compatible } from '../vendors/compatible/compatible.ts'
import { makeRoute } from './route.ts'
import { run, type Line } from './run.ts'
import type { Admitted, Outcome } from './stages.ts'

const inexpressible = badRequest('This model has no hosted web search.', 'tools')
const broken = new GatewayError('upstream-failed', 'It is broken.')

const answers = (): Promise<Outcome> =>
  Promise.resolve({ kind: 'answered', contentType: '', legs: [], body: Buffer.of() })
const fails = (): Promise<Outcome> =>
  Promise.resolve({ kind: 'failed', error: broken, attempts: [], retry: 'elsewhere' })
const throws = (): Promise<Outcome> => Promise.reject(inexpressible)
const refuses = (): Promise<Outcome> =>
  Promise.resolve({ kind: 'failed', error: inexpressible, attempts: [], retry: 'no' })

const refusesToo = (): Promise<Outcome> =>
  Promise.resolve({ kind: 'failed', error: badRequest('Nor has this one.', 'tools'), attempts: [], retry: 'no' })

/**
 * One request over channels that are called in this way; gives what was thrown, and what the hold was released with.
 */
async function walk(...channels: readonly (() => Promise<Outcome>)[]) {
  const released: unknown[] = []
  const parts = {
    authenticate: async () => ({}),
    limit: async () => ({ leave() {} }),
    once: (_limited: unknown, go: () => unknown) => go(),
    admit: async () => ({}),
    *route() {
      for (const call of channels) yield { call, route: {} }
    },
    noRoute: (_admitted: unknown, passedOver: readonly PassedOver[]) => passedOver[0]?.refusal,
    call: (routed: { call: () => Promise<Outcome> }) => routed.call(),
    meter: () => 'the answer',
    release: async (_admitted: unknown, _failed: unknown, error: unknown) => void released.push(error),
  } as unknown as Line
  const thrown = await thrownBy(run(parts, {} as never))
  expect(released).toEqual(thrown === 'nothing' ? [] : [thrown])
  return thrown
}

test.each([
  ['alone', [throws], inexpressible],
  ['before one that cannot either', [throws, refusesToo], inexpressible],
  ['before one that answers', [throws, answers], 'nothing'],
  ['as a failed step, before one that answers', [refuses, answers], 'nothing'],
  ['before one that failed', [throws, fails], broken],
  ['after one that failed', [fails, throws], broken],
  ['between one that failed and one that answers', [fails, throws, answers], 'nothing'],
  ['as a failed step, after one that failed', [fails, refuses], broken],
  ['as a failed step, between one that failed and one that answers', [fails, refuses, answers], 'nothing'],
])('a channel that cannot express the request, %s', async (_where, channels, told) => {
  expect(await walk(...channels)).toBe(told)
})

test('channels that cannot express the request do not count as attempts', async () => {
  const vendor = compatible({ id: 'v', baseUrl: 'https://v' })
  const all = Array.from({ length: 4 }, (_, index): Channel => {
    return { id: `c${index}`, vendor, baseUrl: `https://v${index}`, credentials: ['k'], weight: 1, priority: index }
  })
  const channels = makeChannels(all, systemClock, () => 0)
  const route = makeRoute({ channels: () => channels, clock: systemClock, attemptsMax: 2 })
  const admitted = { model: { offers: [{ vendor: 'v', upstreamModel: 'm' }] }, errand: { isServedBy: () => true } }
  const routes = route(admitted as unknown as Admitted)
  const tried = [
    routes.next(),
    ...(['unasked', 'elsewhere', 'unasked', 'elsewhere'] as const).map((how) => routes.next(how)),
  ]
  expect(tried.map(({ value }) => value?.route.channel.id)).toEqual(['c0', 'c1', 'c2', 'c3', undefined])
})
