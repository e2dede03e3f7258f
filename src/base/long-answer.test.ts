import { expect, test } from 'bun:test'
import { World } from '../../test/simulation/world.ts'
import { Deadlines } from './deadlines.ts'
import { watchLongAnswer } from './long-answer.ts'

/** A response being sent, what the system tells of it at each look, and until when its connection may be idle. */
function sent({ untaken, endsAt = Number.POSITIVE_INFINITY }: { untaken: () => number | undefined; endsAt?: number }) {
  const world = new World(1)
  let openUntil = 0
  const isUnderway = () => world.now < endsAt
  const sending = {
    isUnderway,
    allow(seconds: number) {
      if (isUnderway()) openUntil = world.now + seconds * second
    },
    untaken: () => Promise.resolve(untaken()),
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

test('an answer that is taken at once leaves a connection that may be idle as long as any', async () => {
  const { pass, openUntil } = sent({ untaken: () => 0, endsAt: 10 })
  await pass(300 * second)
  expect(openUntil()).toBe(65 * second)
})

test('one that is taken slowly is waited for, and leaves such a connection too', async () => {
  let untaken = 4_000_000
  const endsAt = 1_000 * second
  const { pass, openUntil, now } = sent({ untaken: () => (untaken -= 1_000), endsAt })
  for (let seconds = 0; seconds < 999; seconds += 27) {
    await pass(27 * second)
    expect(openUntil()).toBeGreaterThan(now())
  }
  await pass(300 * second)
  expect(openUntil()).toBeLessThanOrEqual(endsAt + 65 * second)
})

test('one of which nothing is taken is given up after four minutes', async () => {
  const { pass, openUntil } = sent({ untaken: () => 4_000_000 })
  await pass(1_000 * second)
  expect(openUntil()).toBeGreaterThan(240 * second)
  expect(openUntil()).toBeLessThan(260 * second)
})

test('where the system says nothing, the runtime has all the time that it can take', async () => {
  const { pass, openUntil } = sent({ untaken: () => undefined })
  await pass(1_000 * second)
  expect(openUntil()).toBeGreaterThanOrEqual(255 * second)
  expect(openUntil()).toBeLessThan(258 * second)
})
