import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Outflow } from './outflow.ts'

/** A socket that takes as much as it is told to, and what it has taken. */
function socketTaking(...amounts: number[]) {
  const taken: number[] = []
  return {
    taken,
    write(bytes: Uint8Array): number {
      const amount = amounts.shift() ?? bytes.length
      if (amount > 0) taken.push(...bytes.subarray(0, amount))
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

  test('a closed socket takes nothing', () => {
    const out = new Outflow(socketTaking(-1, -1))
    expect(out.write(bytes(1, 2))).toBe(false)
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
    const step = fc.oneof(fc.uint8Array({ maxLength: 6 }), fc.constant('drain' as const))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.array(fc.integer({ min: -1, max: 5 })), (steps, amounts) => {
        const socket = socketTaking(...amounts)
        const out = new Outflow(socket)
        const wrote: number[] = []
        for (const one of steps) {
          if (one === 'drain') out.drain()
          else {
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
