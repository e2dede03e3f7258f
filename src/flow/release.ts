import { asGatewayError, type Kind } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Admitted } from './stages.ts'

/** What the record of a request says that delivered nothing. The client's protocol may show another number. */
const recordedStatus: { readonly [K in Kind]?: number } = {
  'client-gone': 499,
  'too-many': 429,
  'upstream-rejected': 400,
  'upstream-timeout': 504,
  overloaded: 503,
  bug: 500,
}

/** Nothing was delivered: the hold goes back whole. */
export async function release(admitted: Admitted, attempts: readonly AttemptRecord[], thrown: unknown): Promise<void> {
  const { kind, details } = asGatewayError(thrown)
  await admitted.funds.release({
    status: details.refusal?.status ?? recordedStatus[kind] ?? 502,
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
