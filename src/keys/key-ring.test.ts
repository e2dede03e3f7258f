import { afterEach, expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { silentLog } from '../base/log.ts'
import { openStore, type Store } from '../store/open.ts'
import { createAccount } from '../store/accounts.ts'
import { insertKey } from '../store/keys.ts'
import { movableClock } from '../../test/support/movable-clock.ts'
import { KeyRing } from './key-ring.ts'
import { makeSecretKeys } from './secret-keys.ts'

const secretKeys = makeSecretKeys(Buffer.from('a'.repeat(32)))
const address = () => '203.0.113.1'

let closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.toReversed()) await close()
  closing = []
})

/** A key ring that counts what it asks of the database, and whose database can be taken away. */
async function openRing() {
  const store = await openStore({ file: ':memory:' })
  const clock = movableClock()
  const asked = { lookups: 0 }
  let isGone = false
  const counted: Store = {
    ...store,
    get db() {
      asked.lookups++
      if (isGone) throw new Error('the database is gone')
      return store.db
    },
  }
  const ring = new KeyRing({
    store: counted,
    secretKeys,
    mode: 'sandbox',
    clock,
    log: silentLog,
    authFailuresPerMinute: 10,
  })
  closing = [() => store.close(), () => ring.close()]
  await createAccount(store, { id: 'acc', name: 'acc', mode: 'sandbox', actor: 'test' })
  const key = secretKeys.make('sk')
  await insertKey(store, {
    id: 'key',
    accountId: 'acc',
    digest: secretKeys.digest('sandbox', key),
    hint: 'x',
    actor: 'test',
  })
  return { ring, key, clock, asked, loseDatabase: () => (isGone = true) }
}

const outcome = (asked: Promise<unknown>) =>
  asked.then(
    () => 'ok',
    (error: unknown) => (error instanceof GatewayError ? error.kind : 'something else'),
  )

test('a key is looked up once, however many ask for it at the same time or later', async () => {
  const { ring, key, asked } = await openRing()
  const found = await Promise.all(Array.from({ length: 50 }, () => ring.authenticate(key, address)))
  expect(new Set(found.map(({ keyId }) => keyId))).toEqual(new Set(['key']))
  await ring.authenticate(key, address)
  expect(asked.lookups).toBe(1)
})

test('a bad key is remembered too', async () => {
  const { ring, asked } = await openRing()
  for (let turn = 0; turn < 5; turn++) expect(await outcome(ring.authenticate('sk-x', address))).toBe('unauthenticated')
  expect(asked.lookups).toBe(1)
})

test('a flood of invented keys stops reaching the database, and a good key still gets through', async () => {
  const { ring, key, clock, asked } = await openRing()
  for (let turn = 0; turn < 10; turn++) await outcome(ring.authenticate(`sk-${turn}`, address))
  const before = asked.lookups
  for (let turn = 0; turn < 1_000; turn++)
    expect(await outcome(ring.authenticate(`sk-later-${turn}`, address))).toBe('too-many')
  expect(asked.lookups).toBe(before)
  expect(await outcome(ring.authenticate(key, address))).toBe('ok')
  expect(await outcome(ring.authenticate('sk-else', () => '203.0.113.2'))).toBe('unauthenticated')
  clock.advance(60_001)
  expect(await outcome(ring.authenticate('sk-again', address))).toBe('unauthenticated')
})

test('without a database, what was known is believed for a minute and no longer', async () => {
  const { ring, key, clock, loseDatabase } = await openRing()
  await ring.authenticate(key, address)
  loseDatabase()
  expect(await outcome(ring.authenticate(key, address))).toBe('ok')
  clock.advance(59_000)
  expect(await outcome(ring.authenticate(key, address))).toBe('ok')
  clock.advance(2_000)
  expect(await outcome(ring.authenticate(key, address))).not.toBe('ok')
})

test('no key at all is asked of nobody', async () => {
  const { ring, asked } = await openRing()
  expect(await outcome(ring.authenticate(undefined, address))).toBe('unauthenticated')
  expect(asked.lookups).toBe(0)
})
