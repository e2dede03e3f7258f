import type { IdempotencyRecord } from '../idempotency/record.ts'
import type { Line } from './run.ts'
import type { Limited, Received, WholeAnswer } from './stages.ts'

export type Ordered = Omit<Limited, 'job'>

/**
 * The line for what is ordered now and made later: the same stages up to the Idempotency-Key, then `place`, which takes
 * the hold and creates a task instead of calling a vendor. It stores the answer under the Idempotency-Key in the same
 * commit.
 */
export async function order(
  line: Pick<Line, 'authenticate' | 'limit' | 'once'>,
  received: Omit<Received, 'job'>,
  place: (ordered: Ordered, remembered: IdempotencyRecord | undefined) => Promise<WholeAnswer>,
): Promise<WholeAnswer> {
  const authenticated = { ...received, principal: await line.authenticate(received) }
  const ordered = { ...authenticated, pass: await line.limit(authenticated) }
  try {
    return await line.once(ordered, (remembered) => place(ordered, remembered))
  } finally {
    ordered.pass.leave(0)
  }
}
