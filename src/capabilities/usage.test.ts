import { expect, test } from 'bun:test'
import { tokensOf, units } from './usage.ts'

test('only what a model reads and writes counts as tokens', () => {
  const all = Object.fromEntries(units.map((unit, index) => [unit, 2 ** index]))
  const others = ['character', 'videoToken', 'webSearch', 'request'] as const
  const rest = others.reduce((sum, unit) => sum + (all[unit] ?? 0), 0)
  expect(tokensOf({ ...all, reasoning: 5 })).toBe(2 ** units.length - 1 - rest)
  expect(tokensOf({ cacheWriteHour: 7, imageOutput: 2 })).toBe(9)
})
