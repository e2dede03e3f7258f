import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Spliced, wholeOf } from '../spliced.ts'
import { chunkOf } from './chunk.ts'
import { Outflow } from './outflow.ts'

/** A socket that takes as much as it is told to, and what it has taken. */
function socketTaking(...amounts: number[]) {
  const taken: number[] = []
  return {
    taken,
    write(all: Uint8Array, from = 0, length = all.length): number {
      const bytes = all.subarray(from, from + length)
      const amount = amounts.shift() ?? bytes.length
      if (amount > 0) for (const byte of bytes.subarray(0, amount)) taken.push(byte)
      return Math.min(amount, bytes.length)
    },
  }
}

const bytes = (...of: number[]) => Uint8Array.from(of)

describe('what goes out', () => {
  test('bytes that the system takes do not wait', () => {
    const socket = socketTaking()
    const out = new Outflow(socket)
    expect([out.write(bytes(1, 2)), out.write(bytes()), out.isEmpty]).toEqual([true, true, true])
    expect(socket.taken).toEqual([1, 2])
  })

  test('what it does not take waits, and nothing overtakes it', () => {
    const socket = socketTaking(1, 0, 1)
    const out = new Outflow(socket)
    expect(out.write(bytes(1, 2, 3))).toBe(false)
    expect(out.write(bytes(4))).toBe(false)
    expect([out.drain(), out.drain(), out.isEmpty]).toEqual([false, false, false])
    expect(out.drain()).toBe(true)
    expect([socket.taken, out.isEmpty]).toEqual([[1, 2, 3, 4], true])
  })

  test('a chunk goes out framed, also one that is larger than most', () => {
    const socket = socketTaking()
    const out = new Outflow(socket)
    const large = Buffer.alloc(70_000, 'x')
    expect([out.writeChunk(Buffer.from('hello')), out.writeChunk(large), out.isEmpty]).toEqual([true, true, true])
    const sent = Buffer.from(socket.taken).toString()
    expect(sent === `5\r\nhello\r\n11170\r\n${large.toString()}\r\n`).toBe(true)
  })

  test('chunks of about the size of the workbench go out whole', () => {
    for (let length = 16 * 1024 - 16; length <= 16 * 1024 + 1; length++) {
      const socket = socketTaking()
      const bytesOfChunk = Buffer.alloc(length, 'x')
      expect(new Outflow(socket).writeChunk(bytesOfChunk)).toBe(true)
      expect(Buffer.compare(Uint8Array.from(socket.taken), chunkOf(bytesOfChunk))).toBe(0)
    }
  })

  test('what is not taken of a chunk waits, whatever other connections write meanwhile', () => {
    const slow = socketTaking(4, 0)
    const out = new Outflow(slow)
    expect(out.writeChunk(Buffer.from('hello'))).toBe(false)
    expect(new Outflow(socketTaking()).writeChunk(Buffer.from('other'))).toBe(true)
    expect(out.writeChunk(Buffer.from('you'))).toBe(false)
    expect([out.drain(), out.drain(), out.isEmpty]).toEqual([false, true, true])
    expect(Buffer.from(slow.taken).toString()).toBe('5\r\nhello\r\n3\r\nyou\r\n')
  })

  test('a closed socket takes nothing', () => {
    const out = new Outflow(socketTaking(-1, -1))
    expect(out.writeChunk(bytes(1, 2))).toBe(false)
    expect([out.drain(), out.isEmpty]).toEqual([false, false])
    out.drop()
    expect(out.isEmpty).toBe(true)
  })

  test('who asks is told when all is sent, at once or later, and never after it was dropped', () => {
    const told: string[] = []
    const out = new Outflow(socketTaking(0))
    out.whenSent(() => told.push('at once'))
    expect(told).toEqual(['at once'])
    out.write(bytes(1))
    out.whenSent(() => told.push('later'))
    expect(told).toEqual(['at once'])
    // The writer has nothing more to write, so it is not asked for more.
    expect(out.drain()).toBe(false)
    expect(out.drain()).toBe(true)
    expect(told).toEqual(['at once', 'later'])
    const closed = new Outflow(socketTaking(0))
    closed.write(bytes(1))
    closed.whenSent(() => told.push('never'))
    closed.drop()
    closed.drain()
    expect(told).toEqual(['at once', 'later'])
  })

  test('what is told of the end may write more', () => {
    const socket = socketTaking(0)
    const out = new Outflow(socket)
    out.write(bytes(1))
    out.whenSent(() => out.write(bytes(2)))
    out.drain()
    expect(socket.taken).toEqual([1, 2])
  })

  test('bytes come out as they went in, however the system takes them', () => {
    const some = fc.uint8Array({ minLength: 1, maxLength: 6 })
    const replaced = fc.tuple(some, some).map(([whole, value]) => new Spliced(whole, 0, 1, value))
    const chunk = fc.oneof(some, replaced)
    const step = fc.oneof(some, fc.record({ chunk }), fc.constant('drain' as const))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.array(fc.integer({ min: -1, max: 9 })), (steps, amounts) => {
        const socket = socketTaking(...amounts)
        const out = new Outflow(socket)
        const wrote: number[] = []
        for (const one of steps) {
          if (one === 'drain') out.drain()
          else if ('chunk' in one) {
            wrote.push(...chunkOf(wholeOf(one.chunk)))
            expect(out.writeChunk(one.chunk)).toBe(out.isEmpty)
          } else {
            wrote.push(...one)
            expect(out.write(one)).toBe(out.isEmpty)
          }
        }
        for (let i = 0; i <= amounts.length; i++) out.drain()
        expect([socket.taken, out.isEmpty]).toEqual([wrote, true])
      }),
      { numRuns: 500 },
    )
  })
})
