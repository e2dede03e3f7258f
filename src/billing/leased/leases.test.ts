import { expect, test } from 'bun:test'
import { movableClock, standingClock } from '../../../test/support/movable-clock.ts'
import { nano } from '../../base/money.ts'
import { Leases } from './leases.ts'

const nobody: ReadonlySet<string> = new Set()

/** Leases with one account, for which `granted` was leased and `charged` was spent since the last turn. */
function leasesWith({ granted, charged }: { granted: bigint; charged: bigint }) {
  const leases = new Leases(movableClock())
  const lease = leases.of('acc_a')
  lease.granted(granted)
  lease.take(charged, 0)
  lease.end(charged, charged)
  return { leases, lease }
}

const takeOf = (waiting: readonly bigint[], left: bigint, extra: bigint) => {
  return { accountId: 'acc_a', waiting: waiting.map(nano), left: nano(left), extra: nano(extra) }
}

test('a lease that will not last for two more turns is topped up to eight turns', () => {
  const { leases } = leasesWith({ granted: 299n, charged: 100n })
  expect(leases.ask(nobody)).toEqual({ takes: [takeOf([], 199n, 800n - 199n)], returns: [] })
  // The pace is that of the last turn alone, and nothing was charged since.
  expect(leases.ask(nobody)).toEqual({ takes: [], returns: [] })
})

test('a lease that lasts for two more turns is left alone', () => {
  const { leases } = leasesWith({ granted: 300n, charged: 100n })
  expect(leases.ask(nobody)).toEqual({ takes: [], returns: [] })
})

test('a lease that is being returned is not topped up, whether or not anything is left of it', () => {
  for (const granted of [100n, 110n]) {
    const { leases } = leasesWith({ granted, charged: 100n })
    const returns = granted === 100n ? [] : [{ accountId: 'acc_a', amount: nano(10n) }]
    expect(leases.ask(new Set(['acc_a']))).toEqual({ takes: [], returns })
  }
})

test('a waiting hold asks for its amount plus the larger of twenty holds and eight turns', () => {
  for (const { charged, extra } of [
    { charged: 10n, extra: 100n },
    { charged: 100n, extra: 800n },
  ]) {
    const { leases, lease } = leasesWith({ granted: charged + 2n, charged })
    const waiter = { amount: nano(5n), resolve() {}, isAsked: false, recalls: 0 }
    lease.waiters.push(waiter)
    expect(leases.ask(nobody)).toEqual({ takes: [takeOf([5n], 2n, extra)], returns: [] })
    expect(waiter.isAsked).toBe(true)
  }
})

test('a lease counts as idle by the time since its last hold, not by its age', () => {
  const clock = standingClock()
  const leases = new Leases(clock)
  leases.of('acc_a').granted(10n)
  leases.of('acc_b').granted(10n)
  clock.advance(1_500)
  leases.of('acc_a').take(1n, clock.monotonic())
  clock.advance(1_000)
  expect(leases.idleFor(2_000)).toEqual(['acc_b'])
  clock.advance(1_000)
  expect(leases.idleFor(2_000)).toEqual(['acc_a', 'acc_b'])
})

test('a lease is forgotten once nothing of it remains, but not while a hold waits for it or has spent from it', () => {
  const clock = standingClock()
  const leases = new Leases(clock)
  leases.of('acc_empty')
  leases.of('acc_waiting').waiters.push({ amount: nano(5n), resolve() {}, isAsked: true, recalls: 0 })
  const spent = leases.of('acc_spent')
  spent.granted(10n)
  spent.take(10n, clock.monotonic())
  spent.end(nano(10n), nano(10n))
  clock.advance(1_999)
  leases.idleFor(2_000)
  expect([...leases.accounts]).toEqual(['acc_empty', 'acc_waiting', 'acc_spent'])
  clock.advance(1)
  leases.idleFor(2_000)
  expect([...leases.accounts]).toEqual(['acc_waiting', 'acc_spent'])
})
