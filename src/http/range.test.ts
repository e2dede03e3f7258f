import { expect, test } from 'bun:test'
import { readRange } from './range.ts'

test.each([
  [null, 'whole'],
  ['bytes=0-0', { from: 0, to: 1 }],
  ['bytes=2-4', { from: 2, to: 5 }],
  ['bytes=2-', { from: 2, to: 10 }],
  ['bytes=2-99', { from: 2, to: 10 }],
  ['bytes=-3', { from: 7, to: 10 }],
  ['bytes=-99', { from: 0, to: 10 }],
  ['bytes=10-', 'beyond'],
  ['bytes=10-20', 'beyond'],
  ['bytes=-0', 'beyond'],
  ['bytes=4-2', 'whole'],
  ['bytes=-', 'whole'],
  ['bytes=0-1,3-4', 'whole'],
  ['bytes=a-b', 'whole'],
  ['bytes=-1-2', 'whole'],
  [`bytes=${'9'.repeat(400)}-`, 'whole'],
  ['items=0-1', 'whole'],
  ['', 'whole'],
] as const)('the range %j of ten bytes is read', (header, range) => {
  expect(readRange(header, 10)).toEqual(range)
})

test('a range of an empty file is beyond its end', () => {
  expect(['bytes=0-', 'bytes=-1'].map((header) => readRange(header, 0))).toEqual(['beyond', 'beyond'])
})
