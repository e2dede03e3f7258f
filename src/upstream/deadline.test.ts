import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import type { Clock } from '../base/clock.ts'
import { Deadline } from './deadline.ts'

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
  return { seen, deadline: new Deadline(clock, () => seen.expired++) }
}

test('expires when its time has come, and once', () => {
  const { seen, deadline } = open()
  deadline.set(100)
  pass(99)
  expect(seen.expired).toBe(0)
  pass(2)
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
  pass(50)
  expect(seen.expired).toBe(1)
})

test('can be brought forward', () => {
  const { seen, deadline } = open()
  deadline.set(10_000)
  deadline.set(50)
  pass(51)
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
  pass(2)
  expect(seen.expired).toBe(1)
})

test('is over when it is cleared', () => {
  const { seen, deadline } = open()
  deadline.set(100)
  deadline.clear()
  pass(1_000)
  expect(seen.expired).toBe(0)
})

test('sets a handful of timers for thousands of reads', () => {
  const { deadline } = open()
  const set = jest.spyOn(globalThis, 'setTimeout')
  for (let turn = 0; turn < 10_000; turn++) {
    deadline.set(100)
    now += 1
    if (turn % 100 === 0) jest.advanceTimersByTime(100)
  }
  expect(set.mock.calls.length).toBeLessThan(250)
  set.mockRestore()
  deadline.clear()
})
