import { expect, test } from 'bun:test'
import { NamedCounts } from './named-counts.ts'

test('each name is counted by itself, from zero and back to it', () => {
  const counts = new NamedCounts()
  counts.add('a', 1)
  counts.add('a', 1)
  counts.add('b', 1)
  expect([counts.of('a'), counts.of('b'), counts.of('c')]).toEqual([2, 1, 0])
  counts.add('a', -1)
  counts.add('b', -1)
  expect([counts.of('a'), counts.of('b')]).toEqual([1, 0])
})
