import type { ChatStream } from '../../capabilities/chat.ts'
import type { Exchange } from '../../upstream/transport.ts'
import type { Call } from '../../vendors/vendor.ts'
import { answerBytesMax, failedInside, type CallParts } from '../attempt.ts'
import type { Leg } from '../legs.ts'
import { StreamRelay, streamBytesMax } from '../relay.ts'
import type { ChatRouted } from './chat.ts'
import { chatOf } from './lane.ts'

// Streams of responses tell most of their request again: when they are queued, begin, go on and end. A character of it has
// no more than six bytes there.
const repeatedBytes = 4 * 6

export function openRelay(
  parts: CallParts,
  routed: ChatRouted,
  { body }: Call,
  exchange: Exchange,
  stream: ChatStream,
  leg: Leg,
): StreamRelay {
  const outputTokensMax = routed.ask.outputTokensMax * routed.ask.choices
  const repeats = chatOf(routed).protocol === 'responses' && typeof body === 'string' ? body.length : undefined
  return new StreamRelay(exchange, stream, {
    outputTokensMax,
    // Their last event is a whole answer.
    ...(repeats !== undefined && {
      bytesMax: { event: answerBytesMax, stream: streamBytesMax(outputTokensMax) + repeats * repeatedBytes },
    }),
    leg,
    judge: (failure) => failedInside(parts, routed, failure),
  })
}
