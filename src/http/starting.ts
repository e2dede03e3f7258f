import { GatewayError } from '../base/errors.ts'
import { newRequestId } from '../base/ids.ts'
import { listen, type Listener, type ListenOptions } from '../base/listen.ts'
import type { WriteError } from '../capabilities/errors.ts'
import type { Serve } from '../edge/edge.ts'
import { serveHealth } from './health.ts'

export type Port = {
  readonly listener: Listener
  /** From now on the given function answers. */
  serve(serve: Serve): void
}

/** A port that is open from the first moment, so that a health check can tell a slow start from a dead process. */
export function openPort(at: Pick<ListenOptions, 'hostname' | 'port' | 'setting'>, writeError: WriteError): Port {
  let current: Serve = (request) => Promise.resolve(serveWhileStarting(request, writeError))
  const listener = listen({
    ...at,
    // Bodies are limited by route, with an error in the route's shape; the listener's own limit knows no routes.
    bodyBytesMax: Number.MAX_SAFE_INTEGER,
    fetch: (request, connection) => current(request, connection),
  })
  return {
    listener,
    serve(serve) {
      current = serve
    },
  }
}

/** Until the database answers, the node is alive but not ready, and serves nothing else. */
function serveWhileStarting(request: Request, writeError: WriteError): Response {
  if (request.url.endsWith('/healthz')) return serveHealth()
  const error = new GatewayError('overloaded', 'The gateway is starting: its database does not answer yet.', {
    retryAfterSeconds: 1,
  })
  const { status, headers, body } = writeError(error, newRequestId())
  return new Response(body, { status, headers })
}
