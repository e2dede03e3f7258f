import { Reply } from '../base/http/reply.ts'
import type { JsonLimits } from '../base/json.ts'
import type { Clock } from '../base/clock.ts'
import type { HttpRequest } from '../base/http/request.ts'
import { formatDollars, zeroNano, type Nano } from '../base/money.ts'
import type { Job } from '../flow/job.ts'
import { run, type Line } from '../flow/run.ts'
import type { ReadBody } from '../capabilities/ask.ts'
import type { Answer, Received, WholeAnswer } from '../flow/stages.ts'
import { readJsonBody } from '../edge/read-body.ts'
import type { Visit } from '../edge/route.ts'

export type ServeParts = { line: Line; clock: Clock; bodyBytesMax: number; json: JsonLimits }

/** What a path is for, how its clients send their key and body, and where they look for the request id. */
export type Endpoint = {
  readonly job: Job
  readonly credentialOf: (request: HttpRequest) => string | undefined
  /** The header in which its clients look, beside our own. */
  readonly requestIdHeader?: string
  /** A JSON object, unless the path takes something else. */
  readonly readBody?: (visit: Visit, parts: ServeParts) => Promise<ReadBody>
}

/** Puts a request on the line and its answer on the socket. */
export function serveJob(parts: ServeParts, { job, credentialOf, requestIdHeader, readBody = readJson }: Endpoint) {
  return async (visit: Visit): Promise<Reply> => {
    const { request, requestId } = visit
    if (requestIdHeader !== undefined) visit.responseHeaders[requestIdHeader] = requestId
    const received: Received = { ...receive(visit, parts, credentialOf(request), readBody), job }
    let answer: Answer
    try {
      answer = await run(parts.line, received)
    } catch (thrown) {
      sayCost(visit, zeroNano) // a request that fails before anything was delivered costs nothing
      throw thrown
    }
    if (answer.cost !== undefined) sayCost(visit, answer.cost)
    if (answer.kind === 'stream') {
      visit.connection.follow()
      const headers = {
        'content-type': answer.contentType,
        'cache-control': 'no-cache',
        'x-accel-buffering': 'no', // nginx would hold the stream back
        ...visit.responseHeaders,
      }
      return new Reply(200, headers, answer.body)
    }
    return respondWhole(answer, visit)
  }
}

export function respondWhole(answer: WholeAnswer, { responseHeaders }: Pick<Visit, 'responseHeaders'>): Reply {
  return new Reply(answer.status ?? 200, { 'content-type': answer.contentType, ...responseHeaders }, answer.body)
}

/** Call before the response is made. */
export function sayCost({ responseHeaders }: Pick<Visit, 'responseHeaders'>, cost: Nano): void {
  responseHeaders['x-turnpike-cost'] = formatDollars(cost)
}

/** Makes the line's `Received` of a request, for every path that asks something of a model. */
export function receive(
  visit: Visit,
  parts: ServeParts,
  credential: string | undefined,
  readBody: NonNullable<Endpoint['readBody']>,
): Omit<Received, 'job'> {
  const { request, requestId } = visit
  const receivedTick = parts.clock.monotonic()
  let read: Promise<ReadBody> | undefined
  return {
    requestId,
    credential,
    address: visit.address,
    client: visit.connection,
    markVendorCalled: visit.markVendorCalled,
    signal: request.signal,
    receivedAt: parts.clock.now(),
    elapsedMs: () => Math.round(parts.clock.monotonic() - receivedTick),
    path: visit.path,
    idempotencyKey: request.headers.get('idempotency-key') ?? undefined,
    setHeader(header, value) {
      visit.responseHeaders[header] = value
    },
    header: (name) => request.headers.get(name),
    readBody() {
      read ??= readBody(visit, parts)
      return read
    },
  }
}

export function readJson({ request }: Visit, { bodyBytesMax, json }: ServeParts): Promise<ReadBody> {
  return readJsonBody(request, bodyBytesMax, json)
}
