import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'kysely'
import { until } from '../../test/support/gateway.ts'
import { handTimers } from '../../test/support/hand-timers.ts'
import { movableClock } from '../../test/support/movable-clock.ts'
import { coldStartMs, sharedPostgres } from '../../test/support/postgres.ts'
import { followDatabaseTime } from './database-time.ts'
import { openStore, type Store } from './open.ts'
import type { Queries } from './schema.ts'

const minute = 60_000
let url: string
let store: Store

beforeAll(async () => {
  url = await (await sharedPostgres()).freshDatabase()
  store = await openStore({ url })
}, coldStartMs)

afterAll(async () => {
  await store.close()
  await (await sharedPostgres()).dropDatabase(url)
})

/**
 * The difference to this machine's clock in whole minutes. The test's database runs on this machine, so an answer is
 * off by no more than the time it took.
 */
function awayFromHere(now: number): string {
  return ((now - Date.now()) / minute).toFixed(0).replace('-0', '0')
}

/** The database, with something that happens before each query. */
function askedAfter(happens: () => void): Queries {
  // A query without a table needs nothing else.
  const asked: Pick<Queries, 'getExecutor'> = {
    getExecutor() {
      happens()
      return store.db.getExecutor()
    },
  }
  return asked as Queries
}

test.each([5, -5, 0])('a node whose clock is %i minutes ahead uses the time of its database', async (minutes) => {
  const clock = movableClock()
  clock.setBack(-minutes * minute)
  const time = await followDatabaseTime(store.db, clock, handTimers())
  expect(awayFromHere(time.now())).toBe('0')
  // Setting the machine's clock changes nothing.
  clock.setBack(60 * minute)
  expect(awayFromHere(time.now())).toBe('0')
  time.close()
})

test('a slow answer does not move a clock that agrees with the database', async () => {
  const clock = movableClock()
  const time = await followDatabaseTime(
    askedAfter(() => clock.advance(minute)),
    clock,
    handTimers(),
  )
  // A busy machine may do something else between the two readings.
  expect(Math.abs(time.now() - clock.now())).toBeLessThan(1_000)
  time.close()
})

test('the database time is read again after an answer or a failure, until it is closed', async () => {
  const timers = handTimers()
  const clock = movableClock()
  let isAway = false
  const flaky = askedAfter(() => {
    if (isAway) throw new Error('gone')
  })
  const time = await followDatabaseTime(flaky, clock, timers)
  // The machine slept: its monotonic clock stood still.
  clock.advance(-30 * minute)
  isAway = true
  timers.fire()
  await until(() => timers.waiting.length === 1)
  expect(awayFromHere(time.now())).toBe('-30')
  isAway = false
  timers.fire()
  await until(() => timers.waiting.length === 1)
  expect(awayFromHere(time.now())).toBe('0')
  timers.fire()
  time.close()
  expect(timers.waiting).toEqual([])
})

test('after a failover nothing is read before the clock of the new server is known', async () => {
  const postgres = await sharedPostgres()
  const own = await postgres.freshDatabase()
  const opened = await openStore({ url: own })
  const other = await openStore({ url: own })
  const operator = other.db.withoutPlugins()
  // New sessions find another clock, like sessions on another server.
  await sql`create schema another`.execute(operator)
  await sql`create function another.clock_timestamp() returns timestamptz language sql as
    'select pg_catalog.clock_timestamp() - interval ''3 hours'''`.execute(operator)
  const [name] = (await sql<{ name: string }>`select current_database() as name`.execute(operator)).rows
  await sql`alter database ${sql.id(name?.name ?? '')} set search_path = another, pg_catalog, public`.execute(operator)
  expect(awayFromHere(opened.now())).toBe('0')
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`.execute(operator)
  await until(() =>
    opened.ping().then(
      () => true,
      () => false,
    ),
  )
  expect(awayFromHere(opened.now())).toBe('-180')
  await Promise.all([opened.close(), other.close()])
  await postgres.dropDatabase(own)
})
