import type { Reply } from '../base/http/reply.ts'
import type { CountCodec } from '../capabilities/chat.ts'
import { bearerOrApiKeyOf } from '../edge/credential.ts'
import type { Visit } from '../edge/route.ts'
import type { Count } from '../flow/chat/count.ts'
import { readJson, receive, respondWhole, type ServeParts } from './serve.ts'

/** `POST /v1/messages/count_tokens`: free, and nothing of it is stored except under an Idempotency-Key. */
export function serveCountTokens(parts: ServeParts & { count: Count }, codec: CountCodec) {
  return async (visit: Visit): Promise<Reply> => {
    visit.responseHeaders['request-id'] = visit.requestId
    const received = receive(visit, parts, bearerOrApiKeyOf(visit.request), readJson)
    return respondWhole(await parts.count({ ...received, codec }), visit)
  }
}
