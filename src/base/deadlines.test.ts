import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import type { Clock } from './clock.ts'
import { Deadlines } from './deadlines.ts'

let now = 0
const clock: Clock = { now: () => now, monotonic: () => now }

function pass(ms: number): void {
  now += ms
  jest.advanceTimersByTime(ms)
}

beforeEach(() => {
  now = 0
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

function open() {
  const seen = { expired: 0 }
  return { seen, deadline: new Deadlines(clock).open(() => seen.expired++) }
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
  const seen = { expired: 0 }
  const deadline = new Deadlines(clock).open(() => seen.expired++, 500)
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
  const begun = jest.spyOn(globalThis, 'setInterval')
  const ended = jest.spyOn(globalThis, 'clearInterval')
  const deadlines = new Deadlines(clock)
  const all = Array.from({ length: 1_000 }, () => deadlines.open(() => {}))
  for (const deadline of all) deadline.set(10_000)
  pass(1_000)
  expect([begun.mock.calls.length, ended.mock.calls.length]).toEqual([1, 0])
  for (const deadline of all) deadline.clear()
  pass(100)
  expect([begun.mock.calls.length, ended.mock.calls.length]).toEqual([1, 1])
  all[0]?.set(10_000)
  expect(begun.mock.calls.length).toBe(2)
  begun.mockRestore()
  ended.mockRestore()
})
