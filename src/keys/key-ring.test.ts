import { afterEach, describe, expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { silentLog } from '../base/log.ts'
import { nano } from '../base/money.ts'
import { openStore, type Store } from '../store/open.ts'
import { createAccount, credit } from '../store/accounts.ts'
import { insertKey, revokeKey } from '../store/keys.ts'
import { until } from '../../test/support/gateway.ts'
import { handTimers } from '../../test/support/hand-timers.ts'
import { standingClock, type MovableClock } from '../../test/support/movable-clock.ts'
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
  const clock = standingClock()
  const timers = handTimers()
  const asked = { lookups: 0 }
  const complaints: string[] = []
  let isGone = false
  let delayed: Store['db'] | undefined
  const counted: Store = {
    ...store,
    get db() {
      asked.lookups++
      if (isGone) throw new Error('the database is gone')
      const db = delayed ?? store.db
      delayed = undefined
      return db
    },
  }
  /** Holds the answer to the next query back, which was read before that, until `arrive` is called. */
  const delayNext = () => {
    const [read, arrived] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    delayed = store.db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        read.resolve()
        await arrived.promise
        return result
      },
    })
    return { read: read.promise, arrive: arrived.resolve, fail: () => arrived.reject(new Error('too slow')) }
  }
  const ring = new KeyRing({
    store: counted,
    secretKeys,
    mode: 'sandbox',
    clock,
    timers,
    log: { ...silentLog, warn: (_fields, message) => complaints.push(message) },
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
  /** The next poll, to its end. */
  const poll = async () => {
    timers.fire()
    await until(() => timers.waiting.length === 1)
    return timers.waiting[0]
  }
  const loseDatabase = (gone = true) => void (isGone = gone)
  return { ring, key, clock, timers, asked, complaints, store, poll, loseDatabase, delayNext }
}

/** Polls until there was no request for so long that the ring rests. */
async function rest(poll: () => Promise<number | undefined>) {
  for (let polls = 0; polls < 20; polls++) if ((await poll()) === 10_000) return
  throw new Error('it does not rest')
}

const outcome = (asked: Promise<unknown>) =>
  asked.then(
    () => 'ok',
    (error: unknown) => (error instanceof GatewayError ? error.kind : 'something else'),
  )

test('a key is looked up once for any number of concurrent and later requests', async () => {
  const { ring, key, asked } = await openRing()
  const found = await Promise.all(Array.from({ length: 50 }, () => ring.authenticate(key, address)))
  expect(new Set(found.map(({ keyId }) => keyId))).toEqual(new Set(['key']))
  await ring.authenticate(key, address)
  expect(asked.lookups).toBe(1)
})

test('a bad key is looked up only once', async () => {
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
  clock.advance(40_000)
  expect(ring.authenticate('sk-soon', address)).rejects.toMatchObject({ details: { retryAfterSeconds: 20 } })
  clock.advance(20_001)
  for (let turn = 0; turn < 10; turn++)
    expect(await outcome(ring.authenticate(`sk-again-${turn}`, address))).toBe('unauthenticated')
  expect(await outcome(ring.authenticate('sk-again', address))).toBe('too-many')
})

test.each(['127.0.0.1', '127.8.0.1', '::1', '::ffff:127.0.0.1'])('bad keys from %s are not counted', async (own) => {
  const { ring } = await openRing()
  for (let turn = 0; turn < 20; turn++)
    expect(await outcome(ring.authenticate(`sk-${turn}`, () => own))).toBe('unauthenticated')
})

test('without a database, a known key is accepted for a minute and no longer', async () => {
  const { ring, key, clock, loseDatabase } = await openRing()
  await ring.authenticate(key, address)
  loseDatabase()
  expect(await outcome(ring.authenticate(key, address))).toBe('ok')
  clock.advance(59_999)
  expect(await outcome(ring.authenticate(key, address))).toBe('ok')
  clock.advance(2)
  expect(await outcome(ring.authenticate(key, address))).not.toBe('ok')
})

test('an outage of the database is logged once, however long it lasts', async () => {
  const { complaints, poll, loseDatabase } = await openRing()
  await poll()
  for (const times of [1, 2]) {
    loseDatabase()
    for (let polls = 0; polls < 3; polls++) await poll()
    expect(complaints).toHaveLength(times)
    loseDatabase(false)
    await poll()
  }
  expect(complaints[0]).toContain('valid for up to a minute')
})

test('a missing key is refused without a lookup', async () => {
  const { ring, asked } = await openRing()
  expect(await outcome(ring.authenticate(undefined, address))).toBe('unauthenticated')
  expect(asked.lookups).toBe(0)
})

// what is promised is five seconds.
test('a revoked key is refused after the next poll, a second later', async () => {
  const { ring, key, store, poll } = await openRing()
  expect(await poll()).toBe(1_000)
  await ring.authenticate(key, address)
  await revokeKey(store, { id: 'key', actor: 'test' })
  expect(await outcome(ring.authenticate(key, address))).toBe('ok')
  expect(await poll()).toBe(1_000)
  expect(await outcome(ring.authenticate(key, address))).toBe('unauthenticated')
})

describe('after a suspension', () => {
  for (const [what, suspend] of [
    ['process', (clock: MovableClock) => clock.advance(6_000)],
    // Only the time of day goes on.
    ['machine', (clock: MovableClock) => clock.setBack(-6_000)],
  ] as const) {
    test(`of the ${what}, a key that was revoked meanwhile is refused at once`, async () => {
      const { ring, key, clock, store, poll } = await openRing()
      await poll()
      await ring.authenticate(key, address)
      await revokeKey(store, { id: 'key', actor: 'test' })
      suspend(clock)
      expect(await outcome(ring.authenticate(key, address))).toBe('unauthenticated')
    })
  }

  for (const [end, finish] of [
    ['arrives', 'arrive'],
    ['was given up', 'fail'],
  ] as const) {
    test(`a poll from before it that ${end} does not confirm the cache`, async () => {
      const { ring, key, clock, store, poll, timers, delayNext, complaints } = await openRing()
      await poll()
      await ring.authenticate(key, address)
      const delayed = delayNext()
      timers.fire()
      await delayed.read
      await revokeKey(store, { id: 'key', actor: 'test' })
      clock.advance(6_000)
      const asked = outcome(ring.authenticate(key, address))
      delayed[finish]()
      expect(await asked).toBe('unauthenticated')
      expect(complaints).toEqual([])
    })
  }
})

test('a payment does not make the ring forget its keys', async () => {
  const { ring, key, asked, store, poll } = await openRing()
  await poll()
  await ring.authenticate(key, address)
  await credit(store, { accountId: 'acc', amount: nano(1n), source: 'cash:manual', actor: 'test' })
  await poll()
  const { lookups } = asked
  await ring.authenticate(key, address)
  expect(asked.lookups).toBe(lookups)
})

test('a key that was read before it was revoked is not remembered after that', async () => {
  const { ring, key, store, poll, delayNext } = await openRing()
  await poll()
  const { read, arrive } = delayNext()
  const begun = outcome(ring.authenticate(key, address))
  await read
  await revokeKey(store, { id: 'key', actor: 'test' })
  await poll()
  arrive()
  expect(await begun).toBe('ok')
  expect(await outcome(ring.authenticate(key, address))).toBe('unauthenticated')
})

test('an idle key ring polls less often, and reads the revision before it answers again', async () => {
  const { ring, key, asked, store, poll } = await openRing()
  await ring.authenticate(key, address)
  expect(await poll()).toBe(1_000)
  await ring.authenticate(key, address)
  await rest(poll)
  await revokeKey(store, { id: 'key', actor: 'test' })
  expect(await outcome(ring.authenticate(key, address))).toBe('unauthenticated')
  const before = asked.lookups
  expect(await outcome(ring.authenticate(key, address))).toBe('unauthenticated')
  expect(asked.lookups).toBe(before)
  expect(await poll()).toBe(1_000)
})

test('an idle key ring accepts a known key for a minute when the database is gone', async () => {
  const { ring, key, clock, poll, loseDatabase } = await openRing()
  await poll()
  await ring.authenticate(key, address)
  await rest(poll)
  loseDatabase()
  clock.advance(50_000)
  expect(await outcome(ring.authenticate(key, address))).toBe('ok')
  clock.advance(11_000)
  expect(await outcome(ring.authenticate(key, address))).not.toBe('ok')
})
