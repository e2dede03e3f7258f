import { emptyReply, type HttpResponse, type Reply } from '../base/http/reply.ts'
import type { HttpRequest } from '../base/http/request.ts'

/** Cross-origin access for the origins that an operator names; without any, pages of other origins get no access. */
export type Cors = {
  /** The response to a preflight request, or undefined for any other request. */
  preflight(request: HttpRequest): Reply | undefined
  allow(request: HttpRequest, response: HttpResponse): void
}

const preflightSeconds = 600
const limited = ['requests', 'tokens'].flatMap((what) =>
  ['limit', 'remaining', 'reset'].map((part) => `x-ratelimit-${part}-${what}`),
)
/** The response headers that a page may read. */
const exposed = [
  'x-request-id',
  'request-id',
  'x-turnpike-cost',
  'retry-after',
  'x-should-retry',
  'idempotent-replayed',
  // For a partial download of a result, and for a session with the tool server.
  'content-range',
  'mcp-session-id',
  ...limited,
].join(', ')

export function makeCors(origins: readonly string[]): Cors | undefined {
  if (origins.length === 0) return undefined
  const allowed = (request: HttpRequest) => {
    const origin = request.headers.get('origin')
    return origin !== null && (origins.includes('*') || origins.includes(origin)) ? origin : undefined
  }
  return {
    preflight(request) {
      if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return undefined
      return emptyReply(204, {
        'access-control-allow-methods': 'GET, POST, DELETE',
        'access-control-allow-headers': request.headers.get('access-control-request-headers') ?? '*',
        'access-control-max-age': String(preflightSeconds),
      })
    },
    allow(request, response) {
      // Also for origins that are not allowed: a cache must not give their response to an origin that is.
      response.headers.append('vary', 'Origin')
      const origin = allowed(request)
      if (origin === undefined) return
      response.headers.set('access-control-allow-origin', origin)
      response.headers.set('access-control-expose-headers', exposed)
    },
  }
}
