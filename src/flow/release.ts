import { asGatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { recordedStatus } from '../billing/record.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Tally } from '../telemetry/tally.ts'
import type { Admitted } from './stages.ts'

/** Releases the whole hold, because nothing was delivered. */
export async function release(admitted: Admitted, attempts: readonly AttemptRecord[], thrown: unknown): Promise<void> {
  await admitted.funds.release({
    status: recordedStatus(asGatewayError(thrown)),
    streamed: admitted.ask.stream,
    durationMs: admitted.elapsedMs(),
    attempts,
  })
}

/** Like `release`, but only logs its own failure: the error that is on its way to the client must not be replaced. */
export async function releaseOrLog(
  log: Log,
  admitted: Admitted,
  attempts: readonly AttemptRecord[],
  thrown: unknown,
): Promise<void> {
  try {
    await release(admitted, attempts, thrown)
  } catch (unreleased) {
    log.error({ request: admitted.requestId, cause: String(unreleased) }, 'a hold could not be released')
  }
}

/** Every failure of an admitted request that its client is told passes here, and is counted here. */
export function makeRelease(log: Log, tally: Pick<Tally, 'failed'>) {
  return (admitted: Admitted, attempts: readonly AttemptRecord[], thrown: unknown): Promise<void> => {
    tally.failed(thrown)
    return releaseOrLog(log, admitted, attempts, thrown)
  }
}
