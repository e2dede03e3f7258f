import { expect, test } from 'bun:test'
import { makeGuardedFetch, type GuardedFetch } from './guarded-fetch.ts'
import { probeGuard } from './probe-guard.ts'
import { GuardRefusal, type RefusalReason } from './untrusted-url.ts'

type Make = typeof makeGuardedFetch
type Allowed = Parameters<Make>[0]
type Get = GuardedFetch['get']

const neverAnswers = () => new Promise<never>(() => {})
const refuse = (reason: RefusalReason) => Promise.reject(new GuardRefusal(reason))
const open = { schemes: 'https-and-http', ports: 'any' } as const

const silent = (allowed: Allowed) => makeGuardedFetch(allowed, { resolve: neverAnswers })

/** The real guard, with its `get` changed either where it must refuse, or where it is allowed to connect. */
const guardWhose = (which: 'refused' | 'allowed', change: (get: Get) => Get): Make => {
  return (allowed, world) => {
    const guard = makeGuardedFetch(allowed, world)
    const get: Get = (url, limits) => guard.get(url, limits)
    const isAllowed = allowed?.addresses === 'loopback'
    return isAllowed === (which === 'allowed') ? { ...guard, get: change(get) } : guard
  }
}

const knock: Get = async (url, limits) => {
  const inside = makeGuardedFetch({ ...open, addresses: 'loopback' })
  await inside.get(url.replace(/\/\/.*:/, '//127.0.0.1:'), limits)
  return refuse('not-public')
}

test('the probe passes with the real guard', async () => {
  await probeGuard()
})

test.each<[string, string, Make]>([
  ['does not check addresses', 'is not refused', () => makeGuardedFetch({ ...open, addresses: 'private' })],
  ['connects before it refuses', 'is not refused', guardWhose('refused', () => knock)],
  [
    'refuses only because no server answered',
    'is not refused',
    guardWhose('refused', () => () => refuse('unreachable')),
  ],
  [
    'resolves the name again instead of using the checked address',
    'does not dial',
    (allowed) => makeGuardedFetch(allowed, { resolve: () => Promise.reject(new Error('nobody knows')) }),
  ],
  [
    'reports an answer without connecting',
    'does not dial',
    guardWhose('allowed', () => () => Promise.resolve({ status: 204, mediaType: '', body: new Uint8Array() })),
  ],
  [
    'connects and then fails to read the answer',
    'does not dial',
    guardWhose('allowed', (get) => (url, limits) => get(url, limits).then(() => refuse('broken'))),
  ],
])('a guard that %s fails the probe with a one-line error', async (_name, says, make) => {
  const thrown: unknown = await probeGuard(make).catch((error: unknown) => error)
  expect(String(thrown)).toContain(says)
  expect(String(thrown).split('\n')).toHaveLength(1)
})

test('the probe tries every spelling of the loopback address that a runtime might accept', async () => {
  const hosts: string[] = []
  const noting = guardWhose('refused', (get) => (url, limits) => {
    hosts.push(url.replace(/^http:\/\/|:\d+\/$/g, ''))
    return get(url, limits)
  })
  await probeGuard(noting)
  expect(hosts.slice(0, -1)).toEqual(['localhost', '127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', '[::1]'])
  // The last try is a name that resolves to the loopback.
  expect(hosts.at(-1)).toMatch(/\.invalid$/)
})

test('a resolver that never answers is reported as the cause, not the guard', async () => {
  const thrown: unknown = await probeGuard(silent, 500).catch((error: unknown) => error)
  expect(String(thrown)).toContain('"localhost" could not be resolved within 0.5 s')
  expect(String(thrown)).not.toContain('does not work here')
})
