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

test('expires when its time has come, and once', () => {
  const { seen, deadline } = open()
  deadline.set(100)
  pass(99)
  expect(seen.expired).toBe(0)
  pass(50)
  expect(seen.expired).toBe(1)
  pass(1_000)
  expect(seen.expired).toBe(1)
})

test('moves with every read', () => {
  const { seen, deadline } = open()
  for (let turn = 0; turn < 50; turn++) {
    deadline.set(100)
    pass(60)
  }
  expect(seen.expired).toBe(0)
  pass(100)
  expect(seen.expired).toBe(1)
})

test('one that is renewed is late by a tick at most, and never early', () => {
  const { seen, deadline } = open()
  deadline.renew(100)
  for (let turn = 0; turn < 50; turn++) {
    pass(60)
    deadline.renew(100)
  }
  expect(seen.expired).toBe(0)
  pass(100)
  expect(seen.expired).toBe(0)
  pass(100)
  expect(seen.expired).toBe(1)
})

test.each(['set', 'pause', 'clear'] as const)('what was renewed before it is %s counts no more', (then) => {
  const { seen, deadline } = open()
  deadline.set(100)
  deadline.renew(100)
  deadline[then](1_000)
  pass(500)
  expect(seen.expired).toBe(0)
  pass(600)
  expect(seen.expired).toBe(then === 'set' ? 1 : 0)
})

test('one that has a latest moment is not moved beyond it', () => {
  const { seen, deadline } = open(500)
  deadline.set(100)
  for (let turn = 0; turn < 8; turn++) {
    pass(60)
    deadline.renew(100)
  }
  expect(seen.expired).toBe(0)
  pass(60)
  expect(seen.expired).toBe(1)
})

test('can be brought forward', () => {
  const { seen, deadline } = open()
  deadline.set(10_000)
  deadline.set(50)
  pass(100)
  expect(seen.expired).toBe(1)
})

test('does not count while it is paused', () => {
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

test('is over when it is cleared', () => {
  const { seen, deadline } = open()
  deadline.set(100)
  deadline.clear()
  pass(1_000)
  expect(seen.expired).toBe(0)
})

test('has one timer with all others, and none when all are over', () => {
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

test('one that fails when it expires does not keep the others from being watched', () => {
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

test('one that is set when it expires is watched on', () => {
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
