import { beforeEach, expect, test } from 'bun:test'
import { World } from '../../test/simulation/world.ts'
import { Deadlines } from './deadlines.ts'

let world: World
beforeEach(() => {
  world = new World(1)
})

function pass(ms: number): void {
  world.run(world.now + ms)
}

function open(msMax?: number) {
  const seen = { expired: 0 }
  return { seen, deadline: new Deadlines(world.clock, world).open(() => seen.expired++, msMax) }
}

test('a deadline expires when its time has come, and only once', () => {
  const { seen, deadline } = open()
  deadline.set(100)
  pass(99)
  expect(seen.expired).toBe(0)
  pass(50)
  expect(seen.expired).toBe(1)
  pass(1_000)
  expect(seen.expired).toBe(1)
})

test('a deadline moves each time it is set again', () => {
  const { seen, deadline } = open()
  for (let turn = 0; turn < 50; turn++) {
    deadline.set(100)
    pass(60)
  }
  expect(seen.expired).toBe(0)
  pass(100)
  expect(seen.expired).toBe(1)
})

/** Something that moves when told to. */
function movable() {
  let hasMoved = false
  return {
    move: () => void (hasMoved = true),
    takeMoved() {
      const moved = hasMoved
      hasMoved = false
      return moved
    },
  }
}

test('a deadline that follows something is never early, and late by at most one tick', () => {
  const { seen, deadline } = open()
  const followed = movable()
  deadline.follow(followed, 100)
  for (let turn = 0; turn < 50; turn++) {
    pass(60)
    followed.move()
  }
  expect(seen.expired).toBe(0)
  pass(100)
  expect(seen.expired).toBe(0)
  pass(100)
  expect(seen.expired).toBe(1)
})

test('a deadline that follows something still passes where that never moves', () => {
  const { seen, deadline } = open()
  deadline.follow(movable(), 100)
  pass(99)
  expect(seen.expired).toBe(0)
  pass(50)
  expect(seen.expired).toBe(1)
})

test.each(['set', 'pause', 'clear'] as const)('nothing is followed any more after a %s', (then) => {
  const { seen, deadline } = open()
  const followed = movable()
  deadline.follow(followed, 100)
  deadline[then](1_000)
  followed.move()
  pass(500)
  expect(seen.expired).toBe(0)
  pass(600)
  expect(seen.expired).toBe(then === 'set' ? 1 : 0)
})

test('a deadline with a latest moment is not moved beyond it', () => {
  const { seen, deadline } = open(500)
  const followed = movable()
  deadline.follow(followed, 100)
  for (let turn = 0; turn < 8; turn++) {
    pass(60)
    followed.move()
  }
  expect(seen.expired).toBe(0)
  pass(60)
  expect(seen.expired).toBe(1)
})

test('a deadline can be brought forward', () => {
  const { seen, deadline } = open()
  deadline.set(10_000)
  deadline.set(50)
  pass(100)
  expect(seen.expired).toBe(1)
})

test('a paused deadline does not expire', () => {
  const { seen, deadline } = open()
  deadline.set(100)
  pass(50)
  deadline.pause()
  pass(1_000)
  expect(seen.expired).toBe(0)
  deadline.set(100)
  pass(99)
  expect(seen.expired).toBe(0)
  pass(50)
  expect(seen.expired).toBe(1)
})

test('a cleared deadline does not expire', () => {
  const { seen, deadline } = open()
  deadline.set(100)
  deadline.clear()
  pass(1_000)
  expect(seen.expired).toBe(0)
})

test('all deadlines share one timer, which stops once none of them is set', () => {
  let waiting = 0
  const counted = {
    after(ms: number, run: () => void) {
      waiting++
      return world.after(ms, () => {
        waiting--
        run()
      })
    },
  }
  const deadlines = new Deadlines(world.clock, counted)
  const all = Array.from({ length: 1_000 }, () => deadlines.open(() => {}))
  for (const deadline of all) deadline.set(10_000)
  expect(waiting).toBe(1)
  pass(1_000)
  expect(waiting).toBe(1)
  for (const deadline of all) deadline.clear()
  pass(100)
  expect(waiting).toBe(0)
  all[0]?.set(10_000)
  expect(waiting).toBe(1)
})

test('a deadline that throws when it expires does not keep the others from expiring', () => {
  const deadlines = new Deadlines(world.clock, world)
  let expired = 0
  deadlines
    .open(() => {
      throw new Error('it fails')
    })
    .set(100)
  deadlines.open(() => expired++).set(100)
  pass(1_000)
  expect(world.failures.splice(0)).toHaveLength(1)
  pass(1_000)
  expect(expired).toBe(1)
})

test('a deadline that is set again as it expires keeps expiring', () => {
  const deadlines = new Deadlines(world.clock, world)
  let expired = 0
  const deadline = deadlines.open(() => {
    expired++
    deadline.set(100)
  })
  deadline.set(100)
  pass(1_000)
  expect(expired).toBe(10)
})
