import { expect, test } from 'bun:test'
import { bar } from './progress.ts'

const about = { label: 'vid_1', state: 'running', usualMs: 60_000, isOver: false }

const percent = (elapsedMs: number, isOver = false) =>
  Number(/(\d+)%/.exec(bar({ ...about, elapsedMs, isOver }))?.[1] ?? -1)

test('a bar fills with time, slows down past the usual time, and is full only at the end', () => {
  expect([0, 30_000, 60_000, 120_000, 600_000, 600_000_000].map((ms) => percent(ms))).toEqual([0, 45, 90, 95, 99, 99])
  expect(percent(1_000, true)).toBe(100)
})

test('the whole id of a task fits into 80 columns', () => {
  const label = `vid_${'0'.repeat(32)}`
  const line = bar({ label, state: 'succeeded', elapsedMs: 3_599_000, usualMs: 60_000, isOver: true })
  expect(line).toEndWith(` 100%  59:59  succeeded  ${label}`)
})

test('a line is one column narrower than the terminal', () => {
  for (const columns of [40, 60, 120]) expect(bar({ ...about, elapsedMs: 5_000 }, columns)).toHaveLength(columns - 1)
})
