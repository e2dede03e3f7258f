import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { nano } from '../../base/money.ts'
import { Lease, type WaitOutcome } from './lease.ts'

function waiter(amount: bigint) {
  const outcomes: WaitOutcome[] = []
  const resolve = (outcome: WaitOutcome) => void outcomes.push(outcome)
  return { amount: nano(amount), resolve, isAsked: false, recalls: 0, outcomes }
}

describe('a lease', () => {
  test('a lease grants what is left of it, and not a nano more', () => {
    const lease = new Lease(0)
    lease.granted(10n)
    expect([lease.take(6n, 1), lease.take(5n, 1), lease.take(4n, 1), lease.take(1n, 1)]).toEqual([
      true,
      false,
      true,
      false,
    ])
    expect(lease).toMatchObject({ left: 0n, open: 10n, unflushed: 0n })
  })

  test('the unused part of a hold is free at once, and the charged part is owed until it is posted', () => {
    const lease = new Lease(0)
    lease.granted(10n)
    lease.take(6n, 1)
    lease.end(6n, 4n)
    expect(lease).toMatchObject({ left: 6n, open: 0n, unflushed: 4n, total: 10n })
    lease.flushed(4n)
    expect(lease).toMatchObject({ left: 6n, unflushed: 0n, total: 6n })
  })

  test('waiters go first and are served in order, except those asking for more than is left', () => {
    const lease = new Lease(0)
    const [first, second, third] = [waiter(8n), waiter(3n), waiter(2n)]
    lease.waiters.push(first, second, third)
    lease.granted(5n)
    expect(lease.take(1n, 1)).toBe(false)
    expect(lease.serve()).toEqual([first])
    expect([first, second, third].map(({ outcomes }) => outcomes.length)).toEqual([0, 1, 1])
    expect(lease).toMatchObject({ left: 0n, open: 5n })
  })

  test.each([
    ['a charge beyond the hold', (lease: Lease) => lease.end(5n, 12n)],
    ['the end of a hold that was not taken', (lease: Lease) => lease.end(6n, 0n)],
    ['a posting that was not charged', (lease: Lease) => lease.flushed(1n)],
    ['a bank that has leased less than is in use', (lease: Lease) => lease.correct(4n)],
  ])('a step that makes the sums of a lease wrong throws: %s', (_, lie) => {
    const lease = new Lease(0)
    lease.granted(10n)
    lease.take(5n, 1)
    expect(() => lie(lease)).toThrow('a lease does not add up')
  })

  test('owing more than was leased throws', () => {
    const lease = new Lease(0)
    lease.granted(10n)
    expect(() => lease.owe(11n)).toThrow('charges on money that is not leased to this node')
  })

  test('the total of a lease equals what the bank has leased, after any sequence of steps', () => {
    const step = fc.tuple(fc.constantFrom('grant', 'take', 'end', 'flush', 'correct'), fc.bigInt(0n, 50n))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const lease = new Lease(0)
        const holds: bigint[] = []
        const charges: bigint[] = []
        let bank = 0n
        for (const [what, amount] of steps) {
          if (what === 'grant') {
            bank += amount
            lease.granted(amount)
          } else if (what === 'take' && lease.take(amount, 1)) holds.push(amount)
          else if (what === 'end') {
            const held = holds.pop()
            if (held === undefined) continue
            const charge = amount < held ? amount : held
            charges.push(charge)
            lease.end(held, charge)
          } else if (what === 'flush') {
            const charge = charges.shift() ?? 0n
            bank -= charge
            lease.flushed(charge)
          } else if (what === 'correct') lease.correct(bank)
          expect(lease.total).toBe(bank)
        }
      }),
    )
  })
})
