import type { ChatStream } from '../../capabilities/chat.ts'
import type { Exchange } from '../../upstream/transport.ts'
import type { Call } from '../../vendors/vendor.ts'
import { answerBytesMax, type CallParts } from '../attempt.ts'
import { failedInside } from '../failed.ts'
import { StreamRelay } from '../relay.ts'
import type { ChatRouted } from './chat.ts'
import { chatOf } from './lane.ts'
import { legOfStream } from './legs.ts'

// No event with words comes near this size; the limit keeps a line without an end from filling the memory.
const eventBytesMax = 1024 * 1024
// Far more than any vendor sends for a token: a stream that exceeds it for its whole output cap is not going to end.
const wireBytesPerToken = 8 * 1024
const wireBytesSpare = 1024 * 1024
// Streams of the responses protocol repeat most of the request four times: when they are queued, begin, are in progress
// and end. A character of it takes at most six bytes there.
const repeatedBytes = 4 * 6

export function openRelay(
  parts: CallParts,
  routed: ChatRouted,
  { body }: Call,
  exchange: Exchange,
  stream: ChatStream,
): StreamRelay {
  const { outputTokensMax, choices } = routed.ask
  const said = outputTokensMax * choices * wireBytesPerToken + wireBytesSpare
  const repeats = chatOf(routed).protocol === 'responses' && typeof body === 'string'
  // A model that draws in its answers sends each image in a single event, of more bytes for a token than words take.
  const drawn = routed.model.prices.rates.imageOutput === undefined ? 0 : answerBytesMax
  return new StreamRelay(exchange, stream, {
    bytesMax: repeats
      ? { event: answerBytesMax, stream: said + body.length * repeatedBytes } // their last event is a whole answer
      : { event: Math.max(eventBytesMax, drawn), stream: said + drawn },
    leg: legOfStream(routed, stream.facts),
    judge: (failure) => failedInside(parts, routed, failure),
    complete: () => parts.channels().answered(routed.route),
  })
}
