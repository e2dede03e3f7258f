import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Timers } from '../../base/clock.ts'
import { createBill, noUnits } from '../bill.ts'
import { openJournal } from '../memory/journal.ts'
import { recall } from '../memory/recall.ts'
import { readSteering } from '../steering.ts'
import { createVideos, type KeptVideos, type TaskFamily } from './tasks.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
const prices = { input: 0n, output: 0n, videoSecond: { '720p': 1_000_000_000_000n } }
const model = { vendor: 'v', model: 'm', reasoning: false, efforts: [], contextTokens: 0, outputTokensMax: 0, prices }

/** A studio whose time moves only when a test moves it. */
function openStudio({ at = 1_000, kept }: { at?: number; kept?: KeptVideos } = {}) {
  let now = at
  const told: string[] = []
  const family: TaskFamily<string> = {
    name: 'test',
    keptMs: 10_000,
    writeId: (seed) => `task-${seed}`,
    tell: ({ oddWord, state }) => void told.push(oddWord ?? state),
    withoutWords: () => 'nothing said',
  }
  let due: { at: number; run: () => void }[] = []
  const timers: Timers = {
    after(ms, run) {
      const timer = { at: now + ms, run }
      due.push(timer)
      return () => {
        due = due.filter((other) => other !== timer)
      }
    },
  }
  const bill = createBill()
  const callbacks = { post: () => {}, stop: () => {} }
  const videos = createVideos({ clock: { now: () => now, monotonic: () => now }, timers, bill, callbacks, kept })
  return {
    tasks: videos.of(family),
    told,
    costs: () => bill.lines().map((line) => line.cost),
    pending: () => due.length,
    stop: () => videos.stop(),
    advance: (ms: number): void => {
      const end = now + ms
      for (;;) {
        const [next] = due.filter(({ at }) => at <= end).toSorted((one, other) => one.at - other.at)
        if (!next) break
        due = due.filter((timer) => timer !== next)
        now = next.at
        next.run()
      }
      now = end
    },
  }
}

function order(words = '', more: object = {}) {
  const video = { seconds: 5, resolution: '720p', sound: true }
  const clip = { width: 16, height: 16, frames: 24, sound: false }
  const units = { ...noUnits, video }
  return { ref: 'r', model, steering: readSteering(words), origin: '', ask: 'ask', clip, units, ...more }
}

describe('a task', () => {
  test.each([
    ['', ['queued', 'running', 'succeeded'], '5'],
    ['sandbox:zero', ['queued', 'running', 'succeeded'], '0'],
    ['sandbox:stuck', ['queued', 'running'], undefined],
    ['sandbox:slow=100000', ['queued', 'running'], undefined],
    ['sandbox:queued=100000', ['queued'], undefined],
    ['sandbox:odd-state=HALFWAY', ['queued', 'HALFWAY', 'running', 'succeeded'], '5'],
  ])('a task advances with the clock and is billed at its end: %s', (words, states, cost) => {
    const { tasks, advance, costs, told } = openStudio()
    tasks.start(order(words))
    expect(costs()).toEqual([])
    advance(5_000)
    expect(told).toEqual(states)
    expect(costs()).toEqual(cost === undefined ? [] : [cost])
  })

  test('a failed task costs nothing', () => {
    const { tasks, advance, costs } = openStudio()
    const { id } = tasks.start(order('', { failure: { code: 'Bad', message: 'bad' } }))
    advance(1_000)
    expect(tasks.find(id)).toMatchObject({ state: 'failed', endedAt: 1_200 })
    expect(costs()).toEqual(['0'])
  })

  test('a queued task can be cancelled once and a running one cannot', () => {
    const { tasks, advance, costs, pending } = openStudio()
    const task = tasks.start(order('', { expiresAfterMs: 3_000 }))
    expect(tasks.cancel(task)).toBe(true)
    expect(tasks.cancel(task)).toBe(false)
    advance(5_000)
    expect([task.state, costs(), pending()]).toEqual(['cancelled', ['0'], 0])
    const other = tasks.start(order())
    advance(60)
    expect([other.state, tasks.cancel(other)]).toEqual(['running', false])
  })

  test('a task that never ends expires', () => {
    const { tasks, advance, costs } = openStudio()
    const task = tasks.start(order('sandbox:stuck', { expiresAfterMs: 3_000 }))
    advance(2_999)
    expect(task.state).toBe('running')
    advance(1)
    expect([task.state, costs()]).toEqual(['expired', ['0']])
  })

  test('a task is removed after its retention, on vanish and on request', () => {
    const { tasks, advance, costs } = openStudio()
    const first = tasks.start(order())
    expect(tasks.find(tasks.start(order('sandbox:vanish')).id)).toBeUndefined()
    expect(costs()).toEqual(['0'])
    const last = tasks.start(order())
    expect(tasks.list().map(({ id }) => id)).toEqual([last.id, first.id])
    tasks.forget(last)
    expect(tasks.list().map(({ id }) => id)).toEqual([first.id])
    advance(10_300)
    expect(tasks.list()).toEqual([])
  })

  test('stopping the sandbox stops its tasks without billing them', () => {
    const { tasks, advance, costs, pending, stop } = openStudio()
    tasks.start(order())
    const running = tasks.start(order('sandbox:odd-state=X', { expiresAfterMs: 9_000 }))
    advance(60)
    stop()
    expect([pending(), running.state]).toEqual([0, 'running'])
    advance(10_000)
    expect(costs()).toEqual([])
  })
})

const complain = (cause: unknown): never => {
  throw cause
}

describe('a task after a restart', () => {
  const root = temporaryFolder('films')
  const started = 1_000

  /** A studio that keeps its videos in a folder: written when it closes, and read by the next one. */
  function openAgain(folder: string, at: number, origin = 'http://one') {
    const journal = openJournal({ folder: join(root, folder), now: Date.now(), complain })
    const { videos } = recall(journal, at)
    const studio = openStudio({ at, kept: { journal, videos, origin } })
    return {
      ...studio,
      close(): void {
        studio.stop()
        journal.close()
      },
    }
  }

  test.each([
    { words: '', after: 20, meanwhile: 10, ends: ['queued', 'running', 'succeeded'], at: 1_200 },
    { words: '', after: 60, meanwhile: 40, ends: ['running', 'succeeded'], at: 1_200 },
    { words: '', after: 60, meanwhile: 9_000, ends: ['running', 'succeeded'], at: 10_060 },
    { words: 'sandbox:slow=2500', after: 2_000, meanwhile: 400, ends: ['running', 'succeeded'], at: 3_550 },
    { words: 'sandbox:odd-state=X', after: 60, meanwhile: 0, ends: ['X', 'running', 'succeeded'], at: 1_350 },
    { words: 'sandbox:odd-state=X', after: 250, meanwhile: 0, ends: ['running', 'succeeded'], at: 1_350 },
    { words: 'sandbox:stuck', after: 60, meanwhile: 500, ends: ['running', 'expired'], at: 4_000 },
    { words: 'sandbox:fail=Bad', after: 60, meanwhile: 0, ends: ['running', 'failed'], at: 1_200 },
  ])('an unfinished task continues: $words after $after ms', ({ words, after, meanwhile, ends, at }) => {
    const folder = `on ${words} ${after} ${meanwhile}`.replaceAll(':', '')
    const first = openAgain(folder, started)
    const failure = words.includes('fail') && { failure: new Error('bad') }
    const { id } = first.tasks.start(order(words, { expiresAfterMs: 3_000, ...failure }))
    first.advance(after)
    const before = first.tasks.find(id)?.oddWord ?? first.tasks.find(id)?.state
    first.close()
    expect(before).toBe(ends[0])

    const second = openAgain(folder, started + after + meanwhile)
    second.advance(5_000)
    expect(second.told).toEqual(ends.slice(1))
    expect(second.tasks.find(id)).toMatchObject({ id, endedAt: at })
    expect([...first.costs(), ...second.costs()]).toEqual([ends.at(-1) === 'succeeded' ? '5' : '0'])
  })

  test('an ended task is restored unchanged and is not billed again', () => {
    const first = openAgain('ended', started)
    const { id } = first.tasks.start(order('sandbox:seconds=4', { failure: { code: 'Bad', message: 'bad' } }))
    const other = first.tasks.start(order())
    first.tasks.poll(id)
    first.advance(1_000)
    const forgotten = first.tasks.start(order())
    first.tasks.forget(forgotten)
    first.close()

    const second = openAgain('ended', started + 5_000)
    second.advance(1_000)
    expect(second.tasks.find(id)).toMatchObject({ state: 'failed', failure: { code: 'Bad', message: 'bad' } })
    expect(second.tasks.find(id)?.steering.number('seconds')).toBe(4)
    expect(second.tasks.list().map((task) => task.id)).toEqual([other.id, id])
    expect(second.costs()).toEqual([])
    expect(second.told).toEqual([])
  })

  test('a task moves to the new address unless it was ordered through a different one', () => {
    const first = openAgain('moved', started, 'http://one')
    const own = first.tasks.start(order('', { origin: 'http://one' }))
    const other = first.tasks.start(order('', { origin: 'http://simulators.example' }))
    first.close()
    const second = openAgain('moved', started, 'http://two')
    expect(second.tasks.find(own.id)?.origin).toBe('http://two')
    expect(second.tasks.find(other.id)?.origin).toBe('http://simulators.example')
  })

  test('a task keeps its price but not its prompt', () => {
    const first = openAgain('said', started)
    const { id } = first.tasks.start(order('', { ask: 'a secret prompt' }))
    first.close()
    expect(readFileSync(join(root, 'said', 'journal.jsonl'), 'utf8')).not.toContain('secret')
    const second = openAgain('said', started)
    expect(second.tasks.find(id)).toMatchObject({ ask: 'nothing said', model })
  })

  test('a task is gone after a day', () => {
    const first = openAgain('old', started)
    const { id } = first.tasks.start(order())
    first.close()
    expect(openAgain('old', started + 24 * 60 * 60 * 1_000).tasks.find(id)).toBeUndefined()
  })
})
