import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chunkOf } from './http/chunk.ts'
import { streamOf } from './http/pushed-body.ts'
import { copyInto, Spliced, wholeOf, withReplaced } from './spliced.ts'

const some = fc.uint8Array({ maxLength: 40 })
/** Bytes with a part replaced, as they are and as they should come out. */
const cases = fc.tuple(some, some, some, some).map(([before, replaced, value, after]) => {
  const end = before.length + replaced.length
  return {
    piece: new Spliced(Buffer.concat([before, replaced, after]), before.length, end, value),
    wanted: Buffer.concat([before, value, after]),
  }
})

describe('bytes with a part replaced', () => {
  test('come out whole, as an array and among other bytes', () => {
    fc.assert(
      fc.property(cases, fc.nat(9), ({ piece, wanted }, at) => {
        expect(piece.length).toBe(wanted.length)
        expect(Buffer.compare(wholeOf(piece), wanted)).toBe(0)
        const around = Buffer.alloc(at + wanted.length + 3, '-')
        copyInto(piece, around, at)
        const sides = [Buffer.alloc(at, '-'), Buffer.alloc(3, '-')] as const
        expect(Buffer.compare(around, Buffer.concat([sides[0], wanted, sides[1]]))).toBe(0)
      }),
    )
  })

  test('come out whole as a chunk, and for a reader in this process', async () => {
    const piece = new Spliced(Buffer.from('the cat sat'), 4, 7, Buffer.from('tiger'))
    expect(Buffer.from(chunkOf(piece)).toString()).toBe('d\r\nthe tiger sat\r\n')
    const stream = streamOf({
      begin(sink) {
        sink.write(piece)
        sink.end()
      },
      drained() {},
      left() {},
    })
    expect(await new Response(stream).text()).toBe('the tiger sat')
  })

  test('are the same array where nothing changes, and are copied as they are', () => {
    const bytes = Buffer.from('the cat sat')
    expect(withReplaced(bytes, 4, 7, Buffer.from('cat'))).toBe(bytes)
    expect(wholeOf(bytes)).toBe(bytes)
    expect(withReplaced(bytes, 4, 7, Buffer.from('dog'))).toBeInstanceOf(Spliced)
    const target = Buffer.alloc(13, '-')
    copyInto(bytes, target, 1)
    expect(target.toString()).toBe('-the cat sat-')
  })
})
