import { asGatewayError, GatewayError } from '../base/errors.ts'
import { newRequestId, type RequestId } from '../base/ids.ts'
import type { Connection } from '../base/http/connection.ts'
import { Reply, type HttpResponse } from '../base/http/reply.ts'
import type { HttpRequest } from '../base/http/request.ts'
import type { Log } from '../base/log.ts'
import type { WriteError } from '../capabilities/errors.ts'
import type { Tally } from '../telemetry/tally.ts'
import { clientAddress, type IsProxy } from './client-address.ts'
import type { Cors } from './cors.ts'
import { makeFinder, type Found } from './find-route.ts'
import { logFault } from './log-fault.ts'
import { passOver } from './read-body.ts'
import type { Route } from './route.ts'
import type { Waiter, Waiting } from './waiting.ts'

export type EdgeOptions = {
  readonly routes: readonly Route[]
  /** Writes errors where no route matched. */
  readonly writeError: WriteError
  readonly isProxy: IsProxy
  readonly cors: Cors | undefined
  readonly log: Log
  readonly tally: Pick<Tally, 'answered' | 'refused'>
  /** Through this a stop answers the clients that still wait; without it, a stop cuts them off. */
  readonly waiting?: Waiting
  /** While true, every response closes its connection, so that a proxy holds none any more when the port closes. */
  readonly isDraining?: () => boolean
}

export type Serve = (request: HttpRequest, connection: Connection) => Promise<HttpResponse>

/** From a socket's request to a route and back: ids, routing, and every error in the protocol of its path. */
export function makeEdge(options: EdgeOptions): Serve {
  const find = makeFinder(options.routes)

  return async (request, connection) => {
    const requestId = newRequestId()
    const responseHeaders: Record<string, string> = { 'x-request-id': requestId }
    let { writeError } = options
    let response: HttpResponse
    let route: Route | undefined
    const waiter = options.waiting?.enter()
    try {
      const found = find(request)
      if (found.kind === 'path') route = found.route
      writeError = found.route?.writeError ?? writeError
      if (connection.headerCount() > headersMax) throw tooManyHeaders()
      const preflight = options.cors?.preflight(request)
      const serve = ({ route: reached, id }: Reached) =>
        reached.serve({
          request,
          requestId,
          connection,
          address: () => clientAddress(request, connection, options.isProxy),
          path: reached.path,
          id,
          responseHeaders,
          speak(other) {
            writeError = other
          },
          markVendorCalled: () => waiter?.markVendorCalled(),
        })
      const answer = preflight ?? serve(checkReached(request, found))
      const hasId = preflight === undefined && found.route?.auth !== 'open'
      const named = hasId ? answer : identified(answer, requestId)
      response = await (named instanceof Promise && waiter !== undefined ? waiter.for(named) : named)
    } catch (thrown) {
      response = refuse(asGatewayError(thrown), requestId, responseHeaders, writeError)
      if (!(await isHeardOut(request, waiter))) response.headers.set('connection', 'close')
      options.tally.refused(route, response.status, thrown)
    }
    if (options.isDraining?.() === true) response.headers.set('connection', 'close')
    options.tally.answered(route, response.status)
    options.cors?.allow(request, response)
    return response
  }

  function refuse(
    error: GatewayError,
    requestId: RequestId,
    responseHeaders: Readonly<Record<string, string>>,
    writeError: WriteError,
  ): HttpResponse {
    logFault(options.log, requestId, error)
    const { status, headers, body } = writeError(error, requestId)
    return new Reply(status, { ...responseHeaders, ...headers }, Buffer.from(body))
  }
}

type Reached = Extract<Found, { kind: 'path' }>

function checkReached({ method }: HttpRequest, found: Found): Reached {
  if (found.kind === 'path') return found
  if (found.kind === 'wrong-method') {
    throw new GatewayError('wrong-method', `This path takes ${found.allow}, not ${method}.`, { allow: found.allow })
  }
  const advice = found.meant === undefined ? '' : `. Did you mean ${found.meant.method} ${found.meant.path}?`
  throw new GatewayError('not-found', `Unknown path: ${method} ${found.shownPath}${advice}`)
}

/** Reads what a refused client still sends, and tells whether it ended. A stop interrupts this like any other wait. */
async function isHeardOut(request: HttpRequest, waiter: Waiter | undefined): Promise<boolean> {
  if (waiter === undefined) return passOver(request)
  return !waiter.isDismissed && waiter.for(passOver(request)).catch(() => false)
}

/** Routes that take a key send the `responseHeaders`; open routes do not, so the request id is added here. */
async function identified(answer: Promise<HttpResponse> | HttpResponse, requestId: RequestId): Promise<HttpResponse> {
  const response = await answer
  response.headers.set('x-request-id', requestId)
  return response
}

// No client sends even half as many. The server itself stops at 200 headers, and at 16 KiB in total.
const headersMax = 100

function tooManyHeaders(): GatewayError {
  return new GatewayError('too-many-headers', `A request may have at most ${headersMax} headers.`)
}
