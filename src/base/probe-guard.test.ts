import { expect, test } from 'bun:test'
import { makeGuardedFetch } from './guarded-fetch.ts'
import { probeGuard } from './probe-guard.ts'

type Allowed = Parameters<typeof makeGuardedFetch>[0]

const neverAnswers = () => new Promise<never>(() => {})

const silent = (allowed: Allowed) => makeGuardedFetch(allowed, { resolve: neverAnswers })

test('the probe at the start passes here', async () => {
  await probeGuard()
})

test.each([
  [
    'does not check',
    'is not refused',
    () => makeGuardedFetch({ schemes: 'https-and-http', ports: 'any', addresses: 'private' }),
  ],
  [
    'dials what it likes',
    'does not dial',
    (allowed: Allowed) => makeGuardedFetch(allowed, { resolve: () => Promise.reject(new Error('nobody knows')) }),
  ],
] as const)('a guard that %s stops it, with one line', async (_name, says, make) => {
  const thrown: unknown = await probeGuard(make).catch((error: unknown) => error)
  expect(String(thrown)).toContain(says)
  expect(String(thrown).split('\n')).toHaveLength(1)
})

test('where nobody answers for a name, it says that, and does not blame the guard', async () => {
  const thrown: unknown = await probeGuard(silent, 20).catch((error: unknown) => error)
  expect(String(thrown)).toContain('nobody has said in 0.02 s which address "localhost" is')
  expect(String(thrown)).not.toContain('does not work here')
})
