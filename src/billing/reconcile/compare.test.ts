import { expect, test } from 'bun:test'
import { nano, zeroNano } from '../../base/money.ts'
import type { RecordedAttempt, RecordedRequest } from '../../store/reconcile.ts'
import { compare } from './compare.ts'

/** Why the bill and the books disagree on a call whose request was recorded like this. */
function explained(request: Pick<RecordedRequest, 'status' | 'basis'>): string | undefined {
  const attempt = { id: 'att_a', cost: nano(1n), delivered: true, request } as unknown as RecordedAttempt
  return compare({ ref: 'att_a', cost: nano(2n) }, attempt, zeroNano)?.why
}

test.each([
  [200, 'reported no usage'],
  [400, 'broke off'],
  [429, 'broke off'],
  [499, 'the client left'],
  // Our own fault in the middle of a stream, too, and then no journal was replayed.
  [500, 'a gateway ended or failed during the call'],
  [502, 'broke off'],
  [503, 'the vendor was overloaded, or a gateway was being stopped'],
  [504, 'the vendor took too long'],
])('an estimate under the status %d says what happened', (status, why) => {
  expect(explained({ status, basis: 'estimated' })).toContain(why)
})

test('a call that ended with a 500 and was not charged says that a gateway ended or failed', () => {
  expect(explained({ status: 500, basis: 'policy_zero' })).toContain('a gateway ended or failed during the call')
})
