import type { GatewayError } from '../base/errors.ts'
import type { RequestId } from '../base/ids.ts'

// The official clients retry every 409, 429 and 5xx, and a vendor's command-line tool retries 401 for minutes, although
// a retry cannot help with these statuses.
const finalStatuses: ReadonlySet<number> = new Set([401, 402, 422])

/** The headers of an error response, the same in every protocol. */
export function errorHeaders(error: GatewayError, requestId: RequestId, status: number): Record<string, string> {
  const headers: Record<string, string> = { 'content-type': 'application/json', 'x-request-id': requestId }
  const { retryAfterSeconds, allow, shouldRetry, hopeless } = error.details
  if (status === 401) headers['www-authenticate'] = 'Bearer realm="turnpike"'
  if (retryAfterSeconds !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterSeconds)))
  if (allow !== undefined) headers['allow'] = allow
  const isFinal = shouldRetry === false || hopeless === true || finalStatuses.has(status)
  if (isFinal) headers['x-should-retry'] = 'false'
  return headers
}
