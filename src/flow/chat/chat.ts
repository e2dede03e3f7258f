import { GatewayError } from '../../base/errors.ts'
import type { ReceivedRequest } from '../../capabilities/ask.ts'
import type { ChatAsk, ChatCodec, ReplyWriter } from '../../capabilities/chat.ts'
import type { ModelTraits } from '../../capabilities/limits.ts'
import { LinkTime } from '../../upstream/link-time.ts'
import { isInside } from '../../upstream/links.ts'
import type { Exchange } from '../../upstream/transport.ts'
import type { Vendor } from '../../vendors/vendor.ts'
import { answerBytesMax, attempt, streams, type CallParts } from '../attempt.ts'
import { eventStream, json } from '../content-types.ts'
import type { Errand, Job } from '../job.ts'
import { openRelay } from '../open-relay.ts'
import { relayWhole } from '../relay-whole.ts'
import type { Delivered, Outcome, Routed } from '../stages.ts'
import { callSideBySide } from './fan-out.ts'
import { follow } from './follow.ts'
import { inlineLinks, linksInAsk } from './inline-media.ts'
import { answerEventsOf, chatOf, chatContextOf, passingLane, translatingLane, type Lane } from './lane.ts'
import { legOfAnswer, legOfStream } from './legs.ts'

/** A routed request, with what only chats have. */
export type ChatRouted = Routed & {
  readonly ask: ChatAsk
  readonly codec: ChatCodec
  readonly linkTime: LinkTime
  /** The vendor refuses to show our account the model's reasoning, so it is not asked for it. */
  readonly hidesReasoning?: boolean
  /** Receives the writer of the stream, because in some protocols that writes the errors too. */
  readonly onStream?: (stream: Failing) => void
}

type Failing = Pick<ReplyWriter, 'failing'>

/** Chat, as one client protocol speaks it. */
export function chatJob(codec: ChatCodec): Job {
  return {
    capability: 'chat',
    read: (asked, lookUp) => new ChatErrand(codec, asked, lookUp),
  }
}

/** A class, because one is made for every request, and closures would be four more objects each time. */
class ChatErrand implements Errand {
  readonly ask: ChatAsk
  readonly #codec: ChatCodec
  readonly #linkTime = new LinkTime()
  /** The stream of the last attempt, which is the one that the client reads. */
  #stream: Failing | undefined

  constructor(codec: ChatCodec, asked: ReceivedRequest, lookUp: (id: string) => ModelTraits) {
    this.#codec = codec
    this.ask = codec.readAsk(asked, lookUp)
  }

  estimateInput(): number {
    return this.#codec.estimateInput(this.ask)
  }

  isServedBy({ chat }: Vendor): boolean {
    return chat !== undefined
  }

  call(parts: CallParts, routed: Routed): Promise<Outcome> {
    const chat: ChatRouted = {
      ...routed,
      ask: this.ask,
      codec: this.#codec,
      linkTime: this.#linkTime,
      onStream: (stream) => (this.#stream = stream),
    }
    const links = isInside(routed.route.channel) ? linksInAsk(chat) : []
    if (links.length === 0) return callOver(parts, chat)
    return inlineLinks(chat, links, parts.fetchLink).then((inlined) => callOver(parts, inlined))
  }

  writeStreamError(error: GatewayError): Uint8Array {
    return this.#stream?.failing?.(error) ?? this.#codec.writeStreamError(error)
  }
}

function callOver(parts: CallParts, chat: ChatRouted): Promise<Outcome> {
  const { choicesMax, refusedToShowReasoning } = chatOf(chat)
  const call = chat.ask.choices > choicesMax ? callSideBySide : callOnce
  if (refusedToShowReasoning === undefined) return call(parts, chat)
  return callWithReasoning(parts, chat, call, refusedToShowReasoning)
}

/** Where the vendor refuses to show our account the reasoning, the same route is asked again without it. */
async function callWithReasoning(
  parts: CallParts,
  chat: ChatRouted,
  call: typeof callOnce,
  isAboutShowing: (refusal: GatewayError) => boolean,
): Promise<Outcome> {
  const hidesReasoning = parts.channels().hidesReasoning(chat.route)
  const outcome = await call(parts, { ...chat, hidesReasoning })
  if (outcome.kind !== 'failed' || hidesReasoning || !isAboutShowing(outcome.error)) return outcome
  parts.channels().hideReasoning(chat.route)
  return { ...outcome, retry: 'anew' }
}

async function callOnce(parts: CallParts, routed: ChatRouted): Promise<Outcome> {
  const context = chatContextOf(routed, parts)
  const lane = passingLane(routed, context) ?? (await translatingLane(routed, context, parts.fetchLink))
  const attempted = await attempt(parts, routed, lane.call, (exchange) => accept(parts, routed, lane, exchange))
  return attempted.kind === 'failed' ? attempted : attempted.accepted
}

async function accept(parts: CallParts, routed: ChatRouted, lane: Lane, exchange: Exchange): Promise<Delivered> {
  // Asked here as well as there, because waiting for an answer that is known is one more turn of the microtask queue.
  if (routed.ask.stream && (await streams(routed, exchange))) {
    const relay = openRelay(parts, routed, exchange, follow(routed, lane.call, lane.openStream()))
    await relay.begin()
    return { kind: 'streaming', relay, contentType: eventStream }
  }
  const body = await exchange.readAll(answerBytesMax)
  const answer = lane.readAnswer(body) // throws for an error under status 200
  if (routed.ask.stream) return streamWhole(parts, routed, lane, body)
  return { kind: 'answered', body: answer.body, contentType: json, legs: [legOfAnswer(routed, answer)] }
}

function streamWhole(parts: CallParts, routed: ChatRouted, lane: Lane, body: Uint8Array): Delivered {
  const events = answerEventsOf(routed, body)
  const stream = lane.openStream()
  const shown = events.flatMap((event) => stream.take(event) ?? [])
  if (stream.facts.failure !== undefined) throw stream.facts.failure
  const leg = legOfStream(routed, stream.facts)
  // As of a stream: with fewer choices than were asked for and nothing in them, nothing is owed, so it is no answer.
  if (leg.count() === undefined) throw new GatewayError('upstream-failed', "The model's vendor sent an empty answer.")
  parts.channels().answered(routed.route)
  const written = Buffer.concat([...shown, stream.closing()])
  lane.openStream() // writes the error if this cannot be billed: the stream above would put the whole answer into it
  return relayWhole(written, { legs: [leg] })
}
