import type { ChatAsk, ChatCodec } from '../../capabilities/chat.ts'
import type { Exchange } from '../../upstream/transport.ts'
import { answerBytesMax, attempt, contextOf, refuseWhole, streams, type CallParts } from '../attempt.ts'
import type { Job } from '../job.ts'
import type { Delivered, Outcome, Routed } from '../stages.ts'
import { traitsOf } from '../traits.ts'
import { callSideBySide } from './fan-out.ts'
import { chatOf, laneOf, type Lane } from './lane.ts'
import { legOfAnswer, legOfStream } from './legs.ts'
import { openRelay } from './open-relay.ts'

/** A chat on its way, with what only chats have. */
export type ChatRouted = Routed & { readonly ask: ChatAsk; readonly codec: ChatCodec }

/** Chat, as one client protocol speaks it. */
export function chatJob(codec: ChatCodec): Job {
  return {
    capability: 'chat',
    read(asked, lookUp) {
      const ask = codec.readAsk(asked, (id) => traitsOf(lookUp(id), id))
      return {
        ask,
        estimateInput: () => codec.estimateInput(ask),
        isServedBy: (vendor) => vendor.chat !== undefined,
        call: (parts, routed) => callChat(parts, { ...routed, ask, codec }),
        writeStreamError: (error) => codec.writeStreamError(error),
      }
    },
  }
}

async function callChat(parts: CallParts, routed: ChatRouted): Promise<Outcome> {
  if (routed.ask.choices > chatOf(routed).choicesMax) return callSideBySide(parts, routed)
  const lane = await laneOf(routed, contextOf(routed, parts.tenantMac), parts.fetchLink)
  const attempted = await attempt(parts, routed, lane.call, (exchange) => accept(routed, lane, exchange))
  return attempted.kind === 'failed' ? attempted : attempted.accepted
}

async function accept(routed: ChatRouted, lane: Lane, exchange: Exchange): Promise<Delivered> {
  if (streams(routed, exchange)) {
    const stream = lane.openStream()
    const relay = openRelay(routed, exchange, stream, legOfStream(routed, stream.facts))
    await relay.begin()
    return { kind: 'streaming', relay, contentType: eventStream }
  }
  const answer = lane.readAnswer(await exchange.readAll(answerBytesMax))
  refuseWhole(routed)
  return { kind: 'answered', body: answer.body, contentType: json, legs: [legOfAnswer(routed, answer)] }
}

export const eventStream = 'text/event-stream; charset=utf-8'
export const json = 'application/json'
