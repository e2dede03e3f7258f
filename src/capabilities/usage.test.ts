import { expect, test } from 'bun:test'
import { sumOf, tokensOf, units } from './usage.ts'

test('only what a model reads and writes counts as tokens', () => {
  const all = Object.fromEntries(units.map((unit, index) => [unit, 2 ** index]))
  const others = ['character', 'videoToken', 'webSearch', 'request'] as const
  const rest = others.reduce((sum, unit) => sum + (all[unit] ?? 0), 0)
  expect(tokensOf({ ...all, reasoning: 5 })).toBe(2 ** units.length - 1 - rest)
  expect(tokensOf({ cacheWriteHour: 7, imageOutput: 2 })).toBe(9)
})

test('what several calls used is summed unit by unit, with reasoning, and one call keeps its images and videos', () => {
  const parts = [
    { input: 1, output: 5, reasoning: 3 },
    { input: 2, cachedInput: 4 },
    { output: 6, reasoning: 1 },
  ]
  expect(sumOf(parts)).toEqual({ input: 3, cachedInput: 4, output: 11, reasoning: 4 })
  const whole = { input: 1, images: { count: 2 }, video: { seconds: 5, resolution: '720p' } }
  expect(sumOf([whole])).toEqual(whole)
  expect(sumOf([])).toEqual({})
})
