import { expect, test } from 'bun:test'
import { BoundedMap } from './bounded-map.ts'

test('the oldest is forgotten when it is full, and writing again makes young', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.set('a', 3)
  map.set('c', 4)
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([3, undefined, 4])
  map.clear()
  expect(map.get('c')).toBeUndefined()
})
