import type { RememberedAttempt } from '../idempotency/idempotency.ts'
import type { Parts } from './run.ts'
import type { Answer, Limited, Received } from './stages.ts'

export type Ordered = Omit<Limited, 'job'>

/**
 * For what is ordered now and made later: the line as far as its money, and then a task in the place of a call. What
 * `place` is given of an Idempotency-Key, it keeps in the very commit that makes the task.
 */
export async function order(
  parts: Pick<Parts, 'authenticate' | 'limit' | 'once'>,
  received: Omit<Received, 'job'>,
  place: (ordered: Ordered, remembered: RememberedAttempt | undefined) => Promise<Answer>,
): Promise<Answer> {
  const authenticated = { ...received, principal: await parts.authenticate(received) }
  const ordered = { ...authenticated, pass: await parts.limit(authenticated) }
  try {
    return await parts.once(ordered, (remembered) => place(ordered, remembered))
  } finally {
    ordered.pass.leave(0)
  }
}
