import { asGatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { recordedStatus } from '../billing/record.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Admitted } from './stages.ts'

/** Nothing was delivered: the hold goes back whole. */
export async function release(admitted: Admitted, attempts: readonly AttemptRecord[], thrown: unknown): Promise<void> {
  await admitted.funds.release({
    status: recordedStatus(asGatewayError(thrown)),
    streamed: admitted.ask.stream,
    durationMs: admitted.elapsedMs(),
    attempts,
  })
}

/** As above, for where an error is on its way to the client already: it must not be lost to a second one. */
export function makeRelease(log: Log) {
  return async (admitted: Admitted, attempts: readonly AttemptRecord[], thrown: unknown): Promise<void> => {
    try {
      await release(admitted, attempts, thrown)
    } catch (unreleased) {
      const fields = { request: admitted.requestId, cause: String(unreleased) }
      log.error(fields, 'a hold could not be released; it ends at its deadline')
    }
  }
}
