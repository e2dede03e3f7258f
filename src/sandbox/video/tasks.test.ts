import { describe, expect, test } from 'bun:test'
import type { Timers } from '../../base/clock.ts'
import { createBill, noUnits } from '../bill.ts'
import { readSteering } from '../steering.ts'
import { createVideos, type TaskFamily, type VideoState } from './tasks.ts'

const family: TaskFamily<string> = { name: 'test', keptMs: 10_000, writeId: (seed) => `task-${seed}` }
const prices = { input: 0n, output: 0n, videoSecond: { '720p': 1_000_000_000_000n } }
const model = { vendor: 'v', model: 'm', reasoning: false, efforts: [], contextTokens: 0, outputTokensMax: 0, prices }

/** Time that moves when it is told to. */
function openStudio() {
  let now = 1_000
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
  const videos = createVideos({ clock: { now: () => now, monotonic: () => now }, timers, bill, callbacks })
  return {
    tasks: videos.of(family),
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
  ])('moves by the clock and is billed at its end: %s', (words, states, cost) => {
    const { tasks, advance, costs } = openStudio()
    const seen: string[] = []
    tasks.start(
      order(words, {
        onChange: (task: { state: VideoState; oddWord?: string }) => seen.push(task.oddWord ?? task.state),
      }),
    )
    expect(costs()).toEqual([])
    advance(5_000)
    expect(seen).toEqual(states)
    expect(costs()).toEqual(cost === undefined ? [] : [cost])
  })

  test('that fails costs nothing', () => {
    const { tasks, advance, costs } = openStudio()
    const { id } = tasks.start(order('', { failure: { code: 'Bad', message: 'bad' } }))
    advance(1_000)
    expect(tasks.find(id)).toMatchObject({ state: 'failed', endedAt: 1_200 })
    expect(costs()).toEqual(['0'])
  })

  test('is cancelled while it waits, and then stays so', () => {
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

  test('that never ends expires', () => {
    const { tasks, advance, costs } = openStudio()
    const task = tasks.start(order('sandbox:stuck', { expiresAfterMs: 3_000 }))
    advance(2_999)
    expect(task.state).toBe('running')
    advance(1)
    expect([task.state, costs()]).toEqual(['expired', ['0']])
  })

  test('is forgotten after its time, at once when it vanishes, and when asked to', () => {
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

  test('ends with the sandbox', () => {
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
