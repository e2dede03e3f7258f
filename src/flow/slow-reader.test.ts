import { expect, test } from 'bun:test'
import { World } from '../../test/simulation/world.ts'
import { Deadlines } from '../base/deadlines.ts'
import { SlowReader } from './slow-reader.ts'

/** A reader that is behind, and what the system says of it at each look. */
function behind(unreadBytes: (nowMs: number) => number | undefined, { totalMs = 3_600_000, elapsedBeforeMs = 0 } = {}) {
  const world = new World(1)
  let stoppedAt: number | undefined
  const routed = {
    elapsedMs: () => elapsedBeforeMs + world.now,
    client: { letGo() {}, unreadBytes: () => Promise.resolve(unreadBytes(world.now)) },
  }
  const reader = new SlowReader(
    routed,
    new Deadlines(world.clock, world),
    { readerMs: 60_000, totalMs },
    () => (stoppedAt = world.now),
  )
  reader.behind()
  return { reader, pass: (ms: number) => world.run(world.now + ms), stoppedAt: () => stoppedAt }
}

const second = 1_000
const minute = 60 * second

test('a reader that takes nothing is stopped after its time is over, and not before', () => {
  const { pass, stoppedAt } = behind(() => 4_000_000)
  pass(minute)
  expect(stoppedAt()).toBeUndefined()
  pass(16 * second)
  expect(stoppedAt()).toBeGreaterThan(minute)
})

test('a reader of which it is said again and again that it is behind gets no more time by that', () => {
  const { reader, pass, stoppedAt } = behind(() => 4_000_000)
  for (let at = 0; at < 76; at++) {
    pass(second)
    if (stoppedAt() === undefined) reader.behind()
  }
  expect(stoppedAt()).toBeGreaterThan(minute)
})

test('a reader that takes something now and then is not stopped', () => {
  const { pass, stoppedAt } = behind((now) => 4_000_000 - Math.floor(now / (50 * second)))
  pass(59 * minute)
  expect(stoppedAt()).toBeUndefined()
})

test('the time of a reader counts from the last bytes that it took', () => {
  const { pass, stoppedAt } = behind((now) => (now < 5 * minute ? now : 0))
  pass(10 * minute)
  expect(stoppedAt()).toBeGreaterThanOrEqual(6 * minute)
  expect(stoppedAt()).toBeLessThan(6.6 * minute)
})

test('a reader gets five times as long when the system does not report what it takes', () => {
  const { pass, stoppedAt } = behind(() => undefined)
  pass(5 * minute)
  expect(stoppedAt()).toBeUndefined()
  pass(minute)
  expect(stoppedAt()).toBeGreaterThan(5 * minute)
})

test('a reader that has caught up is not watched, and its time starts again when it falls behind', () => {
  const { reader, pass, stoppedAt } = behind(() => 4_000_000)
  pass(50 * second)
  reader.caughtUp()
  pass(10 * minute)
  reader.behind()
  pass(minute)
  expect(stoppedAt()).toBeUndefined()
  pass(16 * second)
  expect(stoppedAt()).toBeGreaterThan(11 * minute)
})

test('a reader that catches up while it is looked at is not watched any more', () => {
  const { reader, pass, stoppedAt } = behind(() => {
    reader.caughtUp()
    return 4_000_000
  })
  pass(10 * minute)
  expect(stoppedAt()).toBeUndefined()
})

test('a reader is stopped when the total time of its request is up, even while it reads', () => {
  const { pass, stoppedAt } = behind((now) => now, { totalMs: 140 * second, elapsedBeforeMs: 40 * second })
  pass(99 * second)
  expect(stoppedAt()).toBeUndefined()
  pass(2 * second)
  expect(stoppedAt()).toBeGreaterThan(99 * second)
})
