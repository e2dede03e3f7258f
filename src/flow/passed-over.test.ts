import { expect, test } from 'bun:test'
import { thrownBy } from '../../test/support/thrown.ts'
import { badRequest, GatewayError } from '../base/errors.ts'
import { run, type Stages } from './run.ts'
import type { Outcome } from './stages.ts'

const inexpressible = badRequest('This model has no hosted web search.', 'tools')
const broken = new GatewayError('upstream-failed', 'It is broken.')

const answers = (): Promise<Outcome> =>
  Promise.resolve({ kind: 'answered', contentType: '', legs: [], body: Buffer.of() })
const fails = (): Promise<Outcome> =>
  Promise.resolve({ kind: 'failed', error: broken, attempts: [], retry: 'elsewhere' })
const throws = (): Promise<Outcome> => Promise.reject(inexpressible)
const refuses = (): Promise<Outcome> =>
  Promise.resolve({ kind: 'failed', error: inexpressible, attempts: [], retry: 'no' })

/** One request over channels that are called in this way; gives what was thrown, and what the hold was released with. */
async function walk(...channels: readonly (() => Promise<Outcome>)[]) {
  const released: unknown[] = []
  const parts = {
    authenticate: async () => ({}),
    limit: async () => ({ leave() {} }),
    once: (_limited: unknown, go: () => unknown) => go(),
    admit: async () => ({}),
    *route() {
      yield* channels
    },
    call: (channel: () => Promise<Outcome>) => channel(),
    meter: () => 'the answer',
    release: async (_admitted: unknown, _failed: unknown, error: unknown) => void released.push(error),
  } as unknown as Stages
  const thrown = await thrownBy(run(parts, {} as never))
  expect(released).toEqual(thrown === 'nothing' ? [] : [thrown])
  return thrown
}

test.each([
  ['alone', [throws], inexpressible],
  ['first', [throws, answers], inexpressible],
  ['after one that failed', [fails, throws], broken],
  ['between one that failed and one that answers', [fails, throws, answers], 'nothing'],
  ['as a failed step, after one that failed', [fails, refuses], broken],
  ['as a failed step, between one that failed and one that answers', [fails, refuses, answers], 'nothing'],
])('a channel that cannot express the request, %s', async (_where, channels, told) => {
  expect(await walk(...channels)).toBe(told)
})
