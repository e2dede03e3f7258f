import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bodyDecoderFor } from './body-decoder.ts'
import { chunkOf, chunkRoom, frameChunk } from './chunk.ts'

describe('a chunk', () => {
  test.each([1, 9, 10, 15, 16, 255, 256, 4095, 4096, 65_535, 65_536, 0x12abcd])('of %d bytes', (length) => {
    const bytes = Buffer.alloc(length, 'x')
    const parts = [Buffer.from(length.toString(16)), Buffer.from('\r\n'), bytes, Buffer.from('\r\n')]
    expect(Buffer.compare(chunkOf(bytes), Buffer.concat(parts))).toBe(0)
  })

  test('is written at the beginning of a buffer, and what is behind it stays', () => {
    const into = Buffer.alloc(5 + chunkRoom, '-')
    expect(frameChunk(Buffer.from('hello'), into)).toBe(10)
    expect(into.toString()).toBe('5\r\nhello\r\n-------')
  })

  test('is read as what was written, whatever follows it', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 5 }), (bodies) => {
        const read: Uint8Array[] = []
        const decoder = bodyDecoderFor({ kind: 'chunked' })
        const last = Buffer.from('0\r\n\r\n')
        decoder.take(Buffer.concat([...bodies.map(chunkOf), last]), read)
        expect(decoder.isOver).toBe(true)
        expect(Buffer.compare(Buffer.concat(read), Buffer.concat(bodies))).toBe(0)
      }),
    )
  })
})
