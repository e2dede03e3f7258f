import { expect, test } from 'bun:test'
import { discard, joined, partOf } from './bytes.ts'

const bytes = Uint8Array.from({ length: 3_000 }, (_, i) => i % 251)

test('a part has the same bytes, whether it is a copy or a view', () => {
  for (const whole of [bytes, Buffer.from(bytes)]) {
    for (const [start, end] of [
      [0, 0],
      [5, 5],
      [5, 1_005],
      [5, 1_006],
      [0, 3_000],
      [2_999, 3_000],
    ] as const) {
      expect([...partOf(whole, start, end)]).toEqual([...bytes.subarray(start, end)])
    }
    expect([...partOf(whole, 2_990)]).toEqual([...bytes.subarray(2_990)])
  }
})

test('a part is the array itself when whole, a copy when small and a view when large', () => {
  expect(partOf(bytes, 0)).toBe(bytes)
  expect(partOf(bytes, 1, 1_001).buffer).not.toBe(bytes.buffer)
  expect(partOf(bytes, 1, 1_002).buffer).toBe(bytes.buffer)
})

test('discarded bytes are empty, and what was joined from them is not', () => {
  const pieces = [Uint8Array.from(bytes), Uint8Array.from(bytes), new Uint8Array()]
  const whole = joined(pieces)
  pieces.forEach(discard)
  expect(pieces.map(({ length }) => length)).toEqual([0, 0, 0])
  expect([...whole]).toEqual([...bytes, ...bytes])
  pieces.forEach(discard)
})

test('a part of a larger buffer is not discarded', () => {
  const part = bytes.subarray(1)
  discard(part)
  expect([bytes.length, part.length]).toEqual([3_000, 2_999])
})
