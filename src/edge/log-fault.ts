import type { GatewayError } from '../base/errors.ts'
import type { RequestId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { isOutOfFiles } from '../base/system-errors.ts'

/** Logs what the operator has to know about a failure, because the client is told little. */
export function logFault(log: Log, request: RequestId, { kind, message, details }: GatewayError): void {
  const { cause } = details
  // A module that cannot be loaded is an error without a stack.
  const why = cause instanceof Error ? (cause.stack ?? String(cause)) : message
  if (kind === 'bug') log.error({ request, cause: why }, 'a bug')
  if (isOutOfFiles(cause)) log.error({ request, cause: String(cause) }, 'no more files can be opened')
}
