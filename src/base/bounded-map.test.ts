import { expect, test } from 'bun:test'
import { BoundedMap } from './bounded-map.ts'

test('a full map drops its oldest entry, and writing a key again makes it the newest', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.set('a', 3)
  map.set('c', 4)
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([3, undefined, 4])
  map.clear()
  expect(map.get('c')).toBeUndefined()
})
