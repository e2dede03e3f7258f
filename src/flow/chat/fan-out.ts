import { newAttemptId } from '../../base/ids.ts'
import { zeroNano } from '../../base/money.ts'
import type { ChatAsk, ChatStream, ReplyReader, ReplyWriter } from '../../capabilities/chat.ts'
import type { Reply, ReplyEvent } from '../../capabilities/conversation.ts'
import {
  answerBytesMax,
  attempt,
  attemptRecord,
  contextOf,
  refuseWhole,
  streams,
  type CallParts,
  type Failed,
} from '../attempt.ts'
import type { FetchLink } from '../../upstream/links.ts'
import { answerOf, chatOf, conversationFor, writerFor } from './lane.ts'
import { countLegs, type Leg } from '../legs.ts'
import { inputCounter, legOfAnswer, legOfStream } from './legs.ts'
import { openRelay } from './open-relay.ts'
import type { Relay, StreamRelay } from '../relay.ts'
import type { Call, CallContext } from '../../vendors/vendor.ts'
import type { Outcome } from '../stages.ts'
import { eventStream, json, type ChatRouted } from './chat.ts'
import { readersFor, type ReplyReaders } from './one-call.ts'
import { ReplyFacts } from './translate.ts'

/**
 * Several choices of a vendor that gives one a call: as many calls side by side, each an attempt of its own, merged by
 * index. All of them or none: a client that asked for three answers has no use for two.
 */
export async function callSideBySide(parts: CallParts, routed: ChatRouted): Promise<Outcome> {
  const ask = { ...routed.ask, choices: 1 }
  const legs = Array.from({ length: routed.ask.choices }, (_, index): ChatRouted => {
    return { ...routed, ask, attemptId: index === 0 ? routed.attemptId : newAttemptId() }
  })
  const { write, readers } = await planCalls(routed, ask, parts.fetchLink)
  const calls = legs.map((leg) => write(contextOf(leg, parts.tenantMac)))
  const writer = writerFor(routed, routed.ask)
  const inputTokens = inputCounter({ codec: routed.codec, ask })

  const opened = await Promise.all(
    legs.map((leg, index) =>
      attempt(parts, leg, calls[index] ?? unplanned(), async (exchange): Promise<Opened> => {
        if (!streams(leg, exchange)) {
          const reply = readers.readAnswer(await exchange.readAll(answerBytesMax))
          refuseWhole(leg)
          return { kind: 'reply', reply }
        }
        const stream = streamOfChoice(index, readers.openReader(), writer)
        const relay = openRelay(leg, exchange, stream, legOfStream(leg, stream.facts, inputTokens))
        await relay.begin()
        return { kind: 'relay', relay }
      }),
    ),
  )
  const accepted = opened.map((one) => (one.kind === 'accepted' ? one.accepted : undefined))
  const failure = opened.find((one) => one.kind === 'failed')
  if (failure !== undefined) return giveUp(failure, opened, legs)

  const relays = accepted.flatMap((one) => (one?.kind === 'relay' ? [one.relay] : []))
  if (relays.length > 0) return { kind: 'streaming', relay: new MergedRelay(relays, writer), contentType: eventStream }
  const replies = accepted.flatMap((one) => (one?.kind === 'reply' ? [one.reply] : []))
  return answeredTogether(routed, legs, replies)
}

/** In the client's own words where the vendor knows them: nothing of the ask is lost, although the replies are merged. */
async function planCalls(routed: ChatRouted, ask: ChatAsk, fetchLink: FetchLink): Promise<Plan> {
  const chat = chatOf(routed)
  const { pass } = chat
  if (chat.protocol === ask.protocol && pass !== undefined) {
    return { write: (context) => pass(ask, context), readers: chat }
  }
  const conversation = await conversationFor(routed, ask, fetchLink)
  return {
    write: (context) => chat.translate(ask, conversation, context),
    readers: readersFor(chat, conversation),
  }
}

type Plan = { readonly write: (context: CallContext) => Call; readonly readers: ReplyReaders }

type Opened =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'relay'; readonly relay: StreamRelay }
type Tried = Failed | { readonly kind: 'accepted'; readonly accepted: Opened }

function unplanned(): never {
  throw new Error('every leg has a call')
}

/** What the others had begun is ended; they may have cost us something, so they stay on record. */
function giveUp(failure: Failed, opened: readonly Tried[], legs: readonly ChatRouted[]): Failed {
  const attempts = opened.flatMap((one, index) => {
    if (one.kind === 'failed') return one.attempts
    if (one.accepted.kind === 'relay') one.accepted.relay.abort()
    const leg = legs[index]
    return leg === undefined ? [] : [attemptRecord(leg, { status: 200, vendorCost: zeroNano, delivered: false })]
  })
  return { ...failure, attempts }
}

function answeredTogether(routed: ChatRouted, legs: readonly ChatRouted[], replies: readonly Reply[]): Outcome {
  const counted = replies.flatMap((reply, index): Leg[] => {
    const leg = legs[index]
    return leg === undefined ? [] : [legOfAnswer(leg, answerOf(leg, reply))]
  })
  const usage = countLegs(counted)?.usage
  const { body } = answerOf(routed, { choices: replies.flatMap(({ choices }) => choices.slice(0, 1)), usage })
  return { kind: 'answered', body, contentType: json, legs: counted }
}

/** One leg's stream as one choice of the whole; the end of the stream is the whole's affair. */
function streamOfChoice(choice: number, reader: ReplyReader, writer: ReplyWriter): ChatStream {
  const facts = new ReplyFacts()
  const placed = (event: ReplyEvent): ReplyEvent => ('choice' in event ? { ...event, choice } : event)
  return {
    facts,
    take(event) {
      const events = reader.read(event)
      facts.note(events)
      return events.length === 0 ? undefined : writer.write(events.map(placed))
    },
    closing: () => new Uint8Array(),
  }
}

/** Streams of several calls as one, in the order in which their events come. */
class MergedRelay implements Relay {
  readonly legs: readonly Leg[]
  readonly #relays: readonly StreamRelay[]
  readonly #writer: ReplyWriter
  readonly #reading = new Map<StreamRelay, Promise<{ relay: StreamRelay; bytes: Uint8Array | undefined }>>()
  readonly #over = new Set<StreamRelay>()

  constructor(relays: readonly StreamRelay[], writer: ReplyWriter) {
    this.#relays = relays
    this.#writer = writer
    this.legs = relays.flatMap(({ legs }) => legs)
  }

  /** Each of them has begun. */
  async begin(): Promise<void> {}

  async next(): Promise<Uint8Array | undefined> {
    while (this.#over.size < this.#relays.length) {
      for (const relay of this.#relays) this.#read(relay)
      const { relay, bytes } = await Promise.race(this.#reading.values())
      this.#reading.delete(relay)
      if (bytes !== undefined) return bytes
      this.#over.add(relay)
    }
    return undefined
  }

  #read(relay: StreamRelay): void {
    if (this.#over.has(relay) || this.#reading.has(relay)) return
    const reading = relay.next().then((bytes) => ({ relay, bytes }))
    // Whoever loses the race may still fail; that is seen when its turn comes, or not at all.
    reading.catch(() => {})
    this.#reading.set(relay, reading)
  }

  complete(): void {
    for (const relay of this.#relays) relay.complete()
  }

  closing(): Uint8Array {
    return this.#writer.closing(countLegs(this.legs)?.usage)
  }

  abort(): void {
    for (const relay of this.#relays) relay.abort()
  }
}
