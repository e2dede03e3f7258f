import { GatewayError } from '../base/errors.ts'
import { newRequestId } from '../base/ids.ts'
import type { WriteError } from '../capabilities/errors.ts'
import { serveHealth } from './health.ts'

/** Until the database answers: alive, not ready, and nothing is served. */
export function serveWhileStarting(request: Request, writeError: WriteError): Response {
  if (request.url.endsWith('/healthz')) return serveHealth()
  const error = new GatewayError('overloaded', 'The gateway is starting: its database does not answer yet.', {
    retryAfterSeconds: 1,
  })
  const { status, headers, body } = writeError(error, newRequestId())
  return new Response(body, { status, headers })
}
