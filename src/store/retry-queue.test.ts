import { expect, test } from 'bun:test'
import { handTimers } from '../../test/support/hand-timers.ts'
import { movableClock } from '../../test/support/movable-clock.ts'
import { makeLog } from '../base/log.ts'
import { RetryQueue } from './retry-queue.ts'

const pauseMs = 500
const hour = 3_600_000

/** A database whose answers the test decides, and which remembers what it was asked to write. */
function begin() {
  const clock = movableClock()
  const timers = handTimers()
  const logged: string[] = []
  const log = makeLog({ level: 'info', write: (line) => logged.push(line) })
  const insisting = new RetryQueue({ log, clock, timers, pauseMs })
  const away = new Set<string>()
  const asked: string[] = []
  const add = (what: string, deadline = clock.now() + hour) =>
    insisting.add({
      about: { what },
      deadline,
      async write() {
        asked.push(what)
        if (away.has(what)) throw Object.assign(new Error('gone'), { code: 'ECONNRESET' })
      },
    })
  /** Fires the timers, and lets everything run that waits for nothing else. */
  const pass = async () => {
    timers.fire()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const said = (what: string) => logged.filter((line) => line.includes(`"${what}"`)).join()
  return { clock, timers, insisting, away, asked, add, pass, said }
}

test('a failing write is tried again after the others, once per pause, until it succeeds', async () => {
  const { insisting, timers, away, asked, add, pass, said } = begin()
  away.add('stuck')
  const over = ['stuck', 'first', 'second'].map((what) => add(what))
  expect([asked, timers.waiting]).toEqual([[], [pauseMs]])
  await pass()
  expect([asked, timers.waiting]).toEqual([['stuck'], [pauseMs]])
  await pass()
  expect([asked, timers.waiting]).toEqual([['stuck', 'first', 'second', 'stuck'], [pauseMs]])
  away.clear()
  await pass()
  await Promise.all(over)
  expect([asked.length, timers.waiting]).toEqual([5, []])
  expect(said('stuck')).toContain('recorded after all')
  // A later write starts the work again.
  const again = add('third')
  timers.fire()
  await again
  await insisting.close()
})

test('a write that still fails after its deadline is logged and given up', async () => {
  const { clock, away, add, pass, said } = begin()
  away.add('late')
  const over = add('late')
  await pass()
  expect(said('late')).toBe('')
  clock.advance(hour)
  await pass()
  await over
  expect(said('late')).toContain('it cannot be recorded')
})

test('a write that the database refuses is not tried again', async () => {
  const { insisting, timers, add, said } = begin()
  const refused = insisting.add({ about: { what: 'wrong' }, write: () => Promise.reject(new Error('no such row')) })
  const over = add('right')
  timers.fire()
  await Promise.all([refused, over])
  expect(said('wrong')).toContain('no such row')
  expect(said('right')).toContain('recorded after all')
})

test('closing tries the remaining writes, logs those it loses, and accepts no new ones', async () => {
  const { insisting, timers, away, asked, add, said } = begin()
  away.add('lost').add('lost too')
  const over = ['kept', 'lost', 'lost too'].map((what) => add(what))
  await insisting.close()
  await Promise.all(over)
  // A database that is away is asked once, not once for each write.
  expect([asked, timers.waiting]).toEqual([['kept', 'lost'], []])
  for (const what of ['lost', 'lost too']) expect(said(what)).toContain('the node stops before')
  await add('later')
  expect(said('later')).toContain('will not be recorded')
  expect(asked).not.toContain('later')
})

test('a full queue accepts no more writes', async () => {
  const { insisting, add, said } = begin()
  for (let at = 0; at < 10_000; at++) void add(`one ${at}`)
  await add('one too many')
  expect(said('one too many')).toContain('will not be recorded')
  await insisting.close()
})
