import type { JsonLimits } from '../base/json.ts'
import type { Clock } from '../base/clock.ts'
import { formatDollars } from '../base/money.ts'
import type { ChatCodec } from '../capabilities/chat.ts'
import { run, type Parts } from '../flow/run.ts'
import type { Received } from '../flow/stages.ts'
import { bearerOf } from '../edge/credential.ts'
import { readJsonBody } from '../edge/read-body.ts'
import type { Visit } from '../edge/route.ts'

/** Puts a chat request on the line and its answer on the socket. */
export function serveChat(
  parts: { line: Parts; clock: Clock; bodyBytesMax: number; json: JsonLimits },
  codec: ChatCodec,
) {
  return async (visit: Visit): Promise<Response> => {
    const { request, requestId } = visit
    const receivedTick = parts.clock.monotonic()
    let read: ReturnType<typeof readWhole> | undefined
    const received: Received = {
      requestId,
      codec,
      credential: bearerOf(request),
      address: visit.address,
      signal: request.signal,
      receivedAt: parts.clock.now(),
      elapsedMs: () => Math.round(parts.clock.monotonic() - receivedTick),
      path: visit.path,
      idempotencyKey: request.headers.get('idempotency-key') ?? undefined,
      say(header, value) {
        visit.said[header] = value
      },
      readBody() {
        read ??= readWhole(visit, parts)
        return read
      },
    }
    const answer = await run(parts.line, received)
    if (answer.kind === 'stream') {
      return new Response(answer.body, {
        headers: {
          'content-type': 'text/event-stream; charset=utf-8',
          'cache-control': 'no-cache',
          'x-accel-buffering': 'no', // nginx would hold the stream back
          'x-request-id': requestId,
          ...visit.said,
        },
      })
    }
    return new Response(answer.body as Uint8Array<ArrayBuffer>, {
      headers: {
        'content-type': 'application/json',
        'x-request-id': requestId,
        'x-turnpike-cost': formatDollars(answer.cost),
        ...visit.said,
      },
    })
  }
}

async function readWhole(visit: Visit, limits: { bodyBytesMax: number; json: JsonLimits }) {
  const read = await readJsonBody(visit.request, limits.bodyBytesMax, limits.json)
  visit.connection.holdOpen()
  return read
}
