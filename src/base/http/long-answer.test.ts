import { expect, test } from 'bun:test'
import { World } from '../../../test/simulation/world.ts'
import { Deadlines } from '../deadlines.ts'
import { watchLongAnswer } from './long-answer.ts'

/** A response being sent, what the system tells of it at each look, and until when its connection may be idle. */
function sent({
  unreadBytes,
  endsAt = Number.POSITIVE_INFINITY,
}: {
  unreadBytes: () => number | undefined
  endsAt?: number
}) {
  const world = new World(1)
  let openUntil = 0
  const isUnderway = () => world.now < endsAt
  const sending = {
    isUnderway,
    allow(seconds: number) {
      if (isUnderway()) openUntil = world.now + seconds * second
    },
    unreadBytes: () => Promise.resolve(unreadBytes()),
  }
  watchLongAnswer(sending, { deadlines: new Deadlines(world.clock, world), clock: world.clock, idleSeconds: 65 })
  return {
    openUntil: () => openUntil,
    /** Moves the time in steps, and lets the pending looks finish between two of them. */
    pass: async (ms: number) => {
      const until = world.now + ms
      while (world.now < until) {
        world.run(Math.min(until, world.now + second))
        await Bun.sleep(0)
      }
    },
    now: () => world.now,
  }
}

const second = 1_000

test('a connection whose answer is read at once may be idle for the usual time', async () => {
  const { pass, openUntil } = sent({ unreadBytes: () => 0, endsAt: 10 })
  await pass(300 * second)
  expect(openUntil()).toBe(65 * second)
})

test('a connection whose answer is read slowly stays open, and then for the usual idle time', async () => {
  let unreadBytes = 4_000_000
  const endsAt = 1_000 * second
  const { pass, openUntil, now } = sent({ unreadBytes: () => (unreadBytes -= 1_000), endsAt })
  for (let seconds = 0; seconds < 999; seconds += 27) {
    await pass(27 * second)
    expect(openUntil()).toBeGreaterThan(now())
  }
  await pass(300 * second)
  expect(openUntil()).toBeLessThanOrEqual(endsAt + 65 * second)
})

test('an answer of which nothing is read is given up after about four minutes', async () => {
  const { pass, openUntil } = sent({ unreadBytes: () => 4_000_000 })
  await pass(1_000 * second)
  expect(openUntil()).toBeGreaterThan(240 * second)
  expect(openUntil()).toBeLessThan(260 * second)
})

test('without counts from the system, a connection gets the longest timeout of the runtime', async () => {
  const { pass, openUntil } = sent({ unreadBytes: () => undefined })
  await pass(1_000 * second)
  expect(openUntil()).toBeGreaterThanOrEqual(255 * second)
  expect(openUntil()).toBeLessThan(258 * second)
})
