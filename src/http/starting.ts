import type { HttpRequest } from '../base/http/request.ts'
import { asGatewayError, GatewayError } from '../base/errors.ts'
import { Reply } from '../base/http/reply.ts'
import { newRequestId } from '../base/ids.ts'
import { serveHttp } from '../base/http/server.ts'
import type { Listener, Place } from '../base/listen.ts'
import type { Log } from '../base/log.ts'
import type { WriteError } from '../capabilities/errors.ts'
import type { Serve } from '../edge/edge.ts'
import { pathOf } from '../edge/target.ts'
import { writeError as writeMessagesError } from '../wire/anthropic/errors.ts'
import { writeEitherError } from '../wire/native/errors.ts'
import { writeError } from '../wire/openai/errors.ts'
import { serveHealth } from './health.ts'
import { speaksMessages } from './models.ts'

export type Port = {
  readonly listener: Listener
  /** From now on the given function answers. */
  serve(serve: Serve): void
}

/** A port that is open from the first moment, so that a health check can tell a slow start from a dead process. */
export function openPort(at: Place, log: Pick<Log, 'error'>): Port {
  let current: Serve = serveWhileStarting
  const listener = serveHttp({ ...at, log, answer: (request, connection) => current(request, connection) })
  return {
    listener,
    serve(serve) {
      current = serve
    },
  }
}

/** Until the database answers, the node is alive but not ready, and serves nothing else. */
async function serveWhileStarting(request: HttpRequest): Promise<Reply> {
  try {
    const path = pathOf(request)
    return path === '/healthz' ? serveHealth() : refuse(stillStarting(), writerFor(request, path))
  } catch (thrown) {
    return refuse(asGatewayError(thrown), writeError)
  }
}

function stillStarting(): GatewayError {
  return new GatewayError('overloaded', 'The gateway is starting: its database does not answer yet.', {
    retryAfterSeconds: 1,
  })
}

function refuse(error: GatewayError, write: WriteError): Reply {
  const { status, headers, body } = write(error, newRequestId())
  return new Reply(status, { ...headers }, Buffer.from(body))
}

/** The routes know their protocols but are not there yet. All others write this error in the common one's form. */
function writerFor(request: HttpRequest, path: string): WriteError {
  if (path === '/v1/messages' || path.startsWith('/v1/messages/')) return writeMessagesError
  if (path === '/v1/models' || path.startsWith('/v1/models/'))
    return speaksMessages(request) ? writeMessagesError : writeError
  return path === '/v1/images/generations' ? writeEitherError : writeError
}
