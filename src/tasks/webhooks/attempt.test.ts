import { describe, expect, test } from 'bun:test'
import { standingClock } from '../../../test/support/movable-clock.ts'
import type { GuardedFetch } from '../../base/guarded-fetch.ts'
import type { WebhookAttempt } from '../../store/outbox.ts'
import { attemptDelivery, attemptLimits, endingOf, nextAfter } from './attempt.ts'
import { retryWaitsMs } from './schedule.ts'
import { makeWebhookSecret } from './sign.ts'

const ended = (how: Partial<WebhookAttempt>): WebhookAttempt => {
  return { at: 0, durationMs: 1, status: 0, why: null, excerpt: null, ...how }
}

test.each<[Partial<WebhookAttempt>, string]>([
  [{ status: 200 }, 'answered'],
  [{ status: 404 }, 'answered'],
  [{ status: 500 }, 'answered'],
  [{ status: 429 }, 'silent'],
  [{ status: 502 }, 'silent'],
  [{ status: 503 }, 'silent'],
  [{ status: 504 }, 'silent'],
  [{ why: 'unreachable' }, 'silent'],
  [{ why: 'too-slow' }, 'silent'],
  // Nothing was sent, so this says nothing about the host.
  [{ why: 'unsigned' }, 'abandoned'],
  [{ why: 'internal' }, 'abandoned'],
])('an attempt that ends with %j counts as %s', (how, ending) => {
  expect<string>(endingOf(ended(how))).toBe(ending)
})

const next = (status: number, attempts: number) => nextAfter(ended({ status }), attempts, 1_000, () => 0.5)

describe('the state of an event after an attempt', () => {
  test('a 2xx delivers the event, a 410 ends it, and anything else is retried', () => {
    for (const status of [200, 204, 299]) expect(next(status, 1)).toEqual({ state: 'delivered' })
    expect(next(410, 1)).toEqual({ state: 'gone' })
    for (const status of [0, 199, 300, 302, 404, 500]) {
      expect(next(status, 1)).toEqual({ state: 'pending', nextAt: 6_000 })
    }
  })

  test('the event is given up when its last attempt fails', () => {
    const last = retryWaitsMs.length + 1
    expect(next(500, last - 1)).toEqual({ state: 'pending', nextAt: 1_000 + 12 * 60 * 60_000 })
    expect(next(500, last)).toEqual({ state: 'given-up' })
    expect(next(200, last)).toEqual({ state: 'delivered' })
  })
})

test('one line of a refusal is kept, up to 200 whole characters', async () => {
  const letter = { id: 'evt_1', url: 'https://receiver.example/', payload: '{}' }
  const excerptOf = async (status: number, text: string | Uint8Array) => {
    const body = Buffer.from(text)
    const fetch = { post: () => Promise.resolve({ status, mediaType: '', body }) } as unknown as GuardedFetch
    const parts = { fetch, clock: standingClock(), limits: attemptLimits }
    return (await attemptDelivery(parts, letter, [makeWebhookSecret()], new AbortController().signal))?.excerpt
  }
  expect(await excerptOf(500, ' no\r\n\tnot\u0000now ')).toBe('no not now')
  expect(await excerptOf(500, 'é'.repeat(500))).toBe('é'.repeat(200))
  expect(await excerptOf(500, Buffer.from('é').subarray(0, 1))).toBeNull()
  expect(await excerptOf(500, '')).toBeNull()
  expect(await excerptOf(200, 'thanks')).toBeNull()
})
