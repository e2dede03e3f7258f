import type { ChatStream } from '../../capabilities/chat.ts'
import type { Call } from '../../vendors/vendor.ts'
import { answerBytesMax } from '../attempt.ts'
import type { Following } from '../open-relay.ts'
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

/** What the relay of a chat needs to know of its stream. */
export function follow(routed: ChatRouted, call: Call, events: ChatStream): Following {
  return { events, leg: legOfStream(routed, events.facts), bytesMax: bytesMaxOf(routed, call) }
}

function bytesMaxOf(routed: ChatRouted, { body }: Call): Following['bytesMax'] {
  const { outputTokensMax, choices } = routed.ask
  const said = outputTokensMax * choices * wireBytesPerToken + wireBytesSpare
  if (chatOf(routed).protocol === 'responses' && typeof body === 'string') {
    return { event: answerBytesMax, stream: said + body.length * repeatedBytes } // their last event is a whole answer
  }
  // A model that draws in its answers sends each image in a single event, of more bytes for a token than words take.
  const drawn = routed.model.prices.rates.imageOutput === undefined ? 0 : answerBytesMax
  return { event: Math.max(eventBytesMax, drawn), stream: said + drawn }
}
