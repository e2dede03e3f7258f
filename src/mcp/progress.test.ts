import { expect, test } from 'bun:test'
import { handTimers } from '../../test/support/hand-timers.ts'
import { makeProgress } from './progress.ts'

function listening() {
  const told: [number, string | undefined][] = []
  const timers = handTimers()
  let now = 0
  const clock = { monotonic: () => now }
  const progress = makeProgress((count, message) => told.push([count, message]), { clock, timers })
  return {
    told,
    timers,
    progress,
    pass: (ms: number) => {
      now += ms
    },
  }
}

test('pieces of a text are put together, and none is lost at the end', () => {
  const { told, progress, pass } = listening()
  const stop = progress.keepTelling()
  progress.add('a')
  progress.add('b')
  expect(told).toEqual([])
  pass(300)
  progress.add('c')
  progress.add('d')
  stop()
  expect(told).toEqual([
    [3, 'abc'],
    [4, 'd'],
  ])
})

test('a silent call says that it lives, every ten seconds, until it is over', () => {
  const { told, timers, progress, pass } = listening()
  const stop = progress.keepTelling('At work')
  for (let round = 0; round < 2; round++) {
    expect(timers.waiting).toEqual([10_000])
    pass(10_000)
    timers.fire()
  }
  stop()
  expect(timers.waiting).toEqual([])
  expect(told).toEqual([
    [1, 'At work (10 s)'],
    [2, 'At work (20 s)'],
  ])
})

test('while a text is on its way, what says so has no words that would stand in it', () => {
  const { told, timers, progress } = listening()
  const stop = progress.keepTelling()
  progress.add('a')
  timers.fire()
  stop()
  expect(told).toEqual([
    [1, 'a'],
    [2, undefined],
  ])
})

test('nobody who gave no token is told anything', () => {
  const timers = handTimers()
  const progress = makeProgress(undefined, { clock: { monotonic: () => 0 }, timers })
  progress.keepTelling('At work')()
  progress.tell('Hello')
  expect([progress.isWanted, timers.waiting]).toEqual([false, []])
})
