import { expect, test } from 'bun:test'
import { handTimers } from '../../test/support/hand-timers.ts'
import { thrownBy } from '../../test/support/clients.ts'
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

test('pieces of a text are sent together, and none is lost at the end', async () => {
  const { told, progress, pass } = listening()
  await progress.during(undefined, async () => {
    progress.add('a')
    progress.add('b')
    expect(told).toEqual([])
    pass(300)
    progress.add('c')
    progress.add('d')
    expect(told).toHaveLength(1)
  })
  expect(told).toEqual([
    [3, 'abc'],
    [4, 'd'],
  ])
})

test('a silent call reports progress every ten seconds until it ends or fails', async () => {
  const { told, timers, progress, pass } = listening()
  const work = progress.during('At work', async () => {
    for (let round = 0; round < 2; round++) {
      expect(timers.waiting).toEqual([10_000])
      pass(10_000)
      timers.fire()
    }
    throw new Error('It failed')
  })
  expect((await thrownBy(work, Error)).message).toBe('It failed')
  expect(timers.waiting).toEqual([])
  expect(told).toEqual([
    [1, 'At work (10 s)'],
    [2, 'At work (20 s)'],
  ])
})

test('a keep-alive between pieces of a text has no message', async () => {
  const { told, timers, progress } = listening()
  await progress.during(undefined, async () => {
    progress.add('a')
    timers.fire()
  })
  expect(told).toEqual([
    [1, 'a'],
    [2, undefined],
  ])
})

test('a call without a progress token reports nothing', async () => {
  const timers = handTimers()
  const progress = makeProgress(undefined, { clock: { monotonic: () => 0 }, timers })
  progress.tell('Hello')
  await progress.during('At work', async () => {
    expect([progress.isWanted, timers.waiting]).toEqual([false, []])
  })
})
