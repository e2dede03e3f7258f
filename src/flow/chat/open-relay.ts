import type { ChatStream } from '../../capabilities/chat.ts'
import type { Exchange } from '../../upstream/transport.ts'
import { discreet } from '../attempt.ts'
import type { Leg } from '../legs.ts'
import { StreamRelay } from '../relay.ts'
import type { ChatRouted } from './chat.ts'

export function openRelay(routed: ChatRouted, exchange: Exchange, stream: ChatStream, leg: Leg): StreamRelay {
  return new StreamRelay(exchange, stream, {
    outputTokensMax: routed.ask.outputTokensMax * routed.ask.choices,
    leg,
    discreet: (failure) => discreet(failure, routed),
  })
}
