import { describe, expect, test } from 'bun:test'
import { Random } from '../../../test/simulation/random.ts'
import { FrameWriter, headerBytes, readFrames } from './frames.ts'

/** A segment of records, each made when everything before it was durable (`synced`), or nothing. */
function segment(payloads: readonly string[], options: { generation?: number; synced?: boolean; from?: number } = {}) {
  const { generation = 1, synced = true, from = 1 } = options
  const parts: Uint8Array[] = []
  let position = 0
  for (const [at, payload] of payloads.entries()) {
    const writer = new FrameWriter()
    writer.add(generation, from + at, synced ? position : 0, payload)
    parts.push(writer.bytes)
    position += writer.bytes.length
  }
  return Buffer.concat(parts)
}

const payloads = Array.from({ length: 12 }, (_, at) =>
  JSON.stringify({ type: 'MARK', id: `hold_${at}`, price: `${at}` }),
)
const read = (bytes: Uint8Array) => readFrames(bytes).frames.map(({ payload }) => payload)

test('written frames are read back unchanged', () => {
  const found = readFrames(segment(['{"a":"ü€😀"}', '', '{}'], { generation: 7, from: 40 }))
  expect(found.frames).toEqual([
    { seq: 40, payload: '{"a":"ü€😀"}' },
    { seq: 41, payload: '' },
    { seq: 42, payload: '{}' },
  ])
  expect(found).toMatchObject({ generation: 7, newest: { generation: 7, seq: 42 }, damage: undefined })
})

test('a writer does not keep the memory of a large copy, and writes on', () => {
  const writer = new FrameWriter()
  for (let seq = 1; seq <= 8; seq++) writer.add(1, seq, 0, 'x'.repeat(1024 * 1024))
  expect(writer.bytes.length).toBeGreaterThan(8 * 1024 * 1024)
  writer.clear()
  writer.add(1, 9, 0, '{"a":"ü€😀"}')
  expect(writer.bytes.buffer.byteLength).toBeLessThan(1024 * 1024)
  expect(read(writer.bytes)).toEqual(['{"a":"ü€😀"}'])
})

test('numbers beyond 32 bits are read back too', () => {
  const [generation, from] = [2 ** 33 + 7, 2 ** 40 + 5]
  const found = readFrames(segment(['{}', '{}'], { generation, from }))
  expect(found.frames.map(({ seq }) => seq)).toEqual([from, from + 1])
  expect(found).toMatchObject({ generation, newest: { generation, seq: from + 1 } })
})

test('a record longer than the buffer of the writer is written whole', () => {
  const long = 'é'.repeat(200_000)
  const writer = new FrameWriter()
  writer.add(1, 1, 0, 'first')
  writer.add(1, 2, 0, long)
  expect(read(writer.bytes)).toEqual(['first', long])
  writer.clear()
  expect(writer.pending).toBe(false)
})

test('a file cut off within its last three records keeps the whole ones and is not damaged', () => {
  const whole = segment(payloads)
  const ends = payloads.map((_, at) => segment(payloads.slice(0, at + 1)).length)
  for (let length = ends[8] ?? 0; length <= whole.length; length++) {
    const found = readFrames(whole.subarray(0, length))
    expect(found.frames.length).toBe(ends.filter((end) => end <= length).length)
    expect(found.damage).toBeUndefined()
  }
})

const flipped = (bytes: Buffer, bit: number) => {
  const byte = Math.floor(bit / 8)
  bytes[byte] = (bytes[byte] ?? 0) ^ (1 << (bit % 8))
  return bytes
}

describe('a single flipped bit', () => {
  const random = new Random(2)
  const flips = Array.from({ length: 1_000 }, () => random.between(0, segment(payloads).length * 8 - 1))

  test('a flipped bit changes no record, and before the last record it is reported as damage', () => {
    const lastStart = segment(payloads.slice(0, -1)).length
    for (const bit of flips) {
      const found = readFrames(flipped(segment(payloads), bit))
      expect(payloads.slice(0, found.frames.length)).toEqual(found.frames.map(({ payload }) => payload))
      expect(found.frames.length).toBeLessThan(payloads.length)
      if (bit / 8 < lastStart) expect(found.damage).toBeDefined()
    }
  })

  test('a flipped bit in unsynced records counts as the torn end of a crash, not as damage', () => {
    for (const bit of flips) {
      const found = readFrames(flipped(segment(payloads, { synced: false }), bit))
      expect(payloads.slice(0, found.frames.length)).toEqual(found.frames.map(({ payload }) => payload))
      expect(found.damage).toBeUndefined()
    }
  })
})

describe('a recycled file', () => {
  const old = segment(payloads, { generation: 4 })

  test('a recycled file ends where its newest generation ends', () => {
    const fresh = segment(payloads.slice(0, 3), { generation: 6, from: 100 })
    const found = readFrames(Buffer.concat([fresh, old.subarray(fresh.length)]))
    expect(found.frames.map(({ seq }) => seq)).toEqual([100, 101, 102])
    expect(found).toMatchObject({ generation: 6, newest: { generation: 6, seq: 102 }, damage: undefined })
  })

  test('an older record right behind the newest generation is not read', () => {
    const fresh = segment(payloads.slice(0, 3), { generation: 6, from: 100 })
    expect(readFrames(Buffer.concat([fresh, segment(payloads, { generation: 4 })])).frames.length).toBe(3)
  })

  test('a torn new start gives no frames and is damage of the older generation', () => {
    const start = segment(payloads.slice(3, 6), { generation: 6, from: 100 })
    // Up to this byte the old and the new start are the same.
    const firstDifference = 9
    for (let cut = firstDifference; cut < headerBytes + 20; cut++) {
      const found = readFrames(Buffer.concat([start.subarray(0, cut), old.subarray(cut)]))
      expect(found.frames).toEqual([])
      expect(found.damage).toEqual({ generation: 4, offset: 0 })
    }
  })

  test('a missing new start is damage only once a later record proves that it was synced', () => {
    const start = segment(payloads, { generation: 6, from: 100, synced: false })
    const torn = Buffer.concat([old.subarray(0, 200), start.subarray(200)])
    expect(readFrames(torn)).toMatchObject({ generation: 4, damage: undefined, newest: { generation: 6 } })
    const vouched = Buffer.concat([torn, segment(['{}'], { generation: 6, from: 200 })])
    const last = new FrameWriter()
    last.add(6, 300, 500, '{}')
    expect(readFrames(Buffer.concat([vouched, last.bytes])).damage).toEqual({ generation: 6, offset: 0 })
  })
})

test('an empty file and a file with foreign content have no frames and no damage', () => {
  for (const bytes of [new Uint8Array(), new Uint8Array(5_000), Buffer.from('1JPT'.repeat(200))]) {
    expect(readFrames(bytes)).toMatchObject({ generation: 0, frames: [], damage: undefined })
  }
})
