import { asGatewayError, badRequest } from '../../base/errors.ts'
import { abortSignalOf } from '../../base/http/client-signal.ts'
import { newAttemptId } from '../../base/ids.ts'
import type { Json } from '../../base/json.ts'
import type { ChatAsk, ChatStream, ReplyReader, ReplyWriter } from '../../capabilities/chat.ts'
import type { Conversation, Reply, ReplyEvent } from '../../capabilities/conversation.ts'
import type { Call } from '../../vendors/vendor.ts'
import { wastedAttempts } from '../attempt-records.ts'
import { answerBytesMax, attempt, streams, type CallParts } from '../attempt.ts'
import { eventStream, json } from '../content-types.ts'
import { failed, failedBesidePaid } from '../failed.ts'
import { countLegs, type Leg } from '../legs.ts'
import { openRelay, type Following } from '../open-relay.ts'
import { pouredWhole } from '../relay-whole.ts'
import type { Poured, StreamRelay } from '../relay.ts'
import type { Failed, Outcome } from '../stages.ts'
import type { ChatRouted } from './chat.ts'
import { follow } from './follow.ts'
import { answerEventsOf, answerOf, chatOf, chatContextOf, conversationFor, passedCall, writerFor } from './lane.ts'
import { legOfAnswer } from './legs.ts'
import { MergedRelay } from './merged-relay.ts'
import { readersFor, type ReplyReaders } from './one-call.ts'
import { ReplyFacts } from './translate.ts'

/** For an answer that was read whole, within a limit of its own. */
const unbounded = { bytesMax: { event: Infinity, stream: Infinity } }

/**
 * Several choices from a vendor that gives one per call: as many calls side by side, each an attempt of its own, merged
 * by index. All succeed or the request fails, because a client that asked for three choices has no use for two.
 */
export async function callSideBySide(parts: CallParts, routed: ChatRouted): Promise<Outcome> {
  const ask = { ...routed.ask, choices: 1 }
  const { calls, readers } = await planCalls(parts, routed, ask)
  const writer = writerFor(routed)
  // A call that fails makes the others useless, so they end with it.
  const stop = new AbortController()
  const signal = AbortSignal.any([abortSignalOf(routed.signal), stop.signal])
  let failure: Failed | undefined
  const begun: StreamRelay[] = []

  const tryChoice = async (call: Call, index: number): Promise<Tried> => {
    const leg = { ...routed, ask, signal, attemptId: index === 0 ? routed.attemptId : newAttemptId() }
    const headers = { ...call.headers, 'x-client-request-id': leg.attemptId }
    const tried = await attempt(parts, leg, { ...call, headers }, async (exchange): Promise<Opened> => {
      const begin = async (source: Poured, bounds?: Pick<Following, 'bytesMax'>): Promise<Opened> => {
        const stream = streamOfChoice(index, readers.openReader(), writer)
        const relay = openRelay(parts, leg, source, { ...follow(leg, call, stream), ...bounds })
        await relay.begin()
        begun.push(relay)
        return { kind: 'relay', relay }
      }
      if (await streams(leg, exchange)) return begin(exchange)
      const body = await exchange.readAll(answerBytesMax)
      const reply = readers.readAnswer(body) // throws for an error under status 200
      if (leg.ask.stream) return begin(pouredWhole(Buffer.concat(answerEventsOf(leg, body))), unbounded)
      return { kind: 'reply', leg: legOfAnswer(leg, answerOf(leg, reply)), reply }
    }).catch(notMade)
    if (tried.kind === 'failed') {
      failure ??= tried
      stop.abort()
    }
    return tried
  }
  const opened = await Promise.all(calls.map(tryChoice))
  const accepted = opened.flatMap((one) => (one.kind === 'accepted' ? [one.accepted] : []))
  if (failure !== undefined) {
    for (const one of accepted) if (one.kind === 'relay') one.relay.abort()
    return giveUp(failure, opened, routed)
  }
  const relays = accepted.flatMap((one) => (one.kind === 'relay' ? [one.relay] : []))
  if (relays.length > 0)
    return { kind: 'streaming', relay: new MergedRelay(relays, writer, begun), contentType: eventStream }
  try {
    return answeredTogether(routed, accepted)
  } catch (thrown) {
    const error = asGatewayError(thrown)
    return giveUp(failed(parts, routed, { status: 200, error, retry: 'no' }), opened, routed)
  }
}

/**
 * Where the vendor speaks the client's protocol the ask passes through, so that nothing of it is lost, although the
 * replies are merged. All calls are written before any is sent, so that one that cannot be written costs nothing.
 */
async function planCalls(parts: CallParts, routed: ChatRouted, ask: ChatAsk): Promise<Plan> {
  const context = chatContextOf(routed, parts)
  const { native } = ask
  const passed = passedCall(routed, ask, context)
  if (passed !== undefined) {
    const pass = (seed: number) => passedCall(routed, { ...ask, native: { ...native, seed } }, context) ?? passed
    return { calls: writeEach(routed, passed, native['seed'], pass), readers: chatOf(routed) }
  }
  const chat = chatOf(routed)
  const conversation = await conversationFor(routed, ask, parts.fetchLink)
  const translate = (words: Conversation) => chat.translate(ask, words, context)
  const reseeded = (seed: number) => translate({ ...conversation, seed })
  const calls = writeEach(routed, translate(conversation), conversation.seed, reseeded)
  return { calls, readers: readersFor(chat, conversation) }
}

/**
 * The call for each choice. Under the same seed all choices would be the same, so each has its own, counted on from the
 * client's. Without a seed the call is written once for all of them.
 */
function writeEach(
  { ask: { choices } }: ChatRouted,
  first: Call,
  seed: Json | undefined,
  write: (seed: number) => Call,
): readonly Call[] {
  checkBytes(first, choices)
  return Array.from({ length: choices }, (_, choice) =>
    typeof seed === 'number' && choice > 0 ? write(seedOf(seed, choice)) : first,
  )
}

/** Alibaba and others refuse a larger seed. */
const seedMax = 2 ** 31 - 1

/** Counts down where counting on would lead out of the range that all vendors take. */
function seedOf(seed: number, choice: number): number {
  return seed + choice > seedMax ? seed - choice : seed + choice
}

/** The limit for all copies of one request together, which are sent at the same time. */
const bytesSideBySideMax = 64 * 1024 * 1024

function checkBytes({ body }: Call, choices: number): void {
  const bytes = typeof body === 'string' ? body.length : 0
  if (bytes * choices <= bytesSideBySideMax) return
  throw badRequest(
    `Invalid 'n': a request of this size may ask for ${Math.floor(bytesSideBySideMax / bytes)} choices.`,
    'n',
  )
}

type Plan = { readonly calls: readonly Call[]; readonly readers: ReplyReaders }

type Opened =
  | { readonly kind: 'reply'; readonly leg: Leg; readonly reply: Reply }
  | { readonly kind: 'relay'; readonly relay: StreamRelay }
type Tried = Failed | { readonly kind: 'accepted'; readonly accepted: Opened }

/** The call was not made, for example because it could not be recorded. */
function notMade(thrown: unknown): Failed {
  return { kind: 'failed', error: asGatewayError(thrown), attempts: [], retry: 'no' }
}

/** Records the other calls as our loss. If the vendor charges for one of them, the request must not be tried again. */
function giveUp(failure: Failed, opened: readonly Tried[], routed: ChatRouted): Failed {
  const attempts = opened.flatMap((one) => {
    if (one.kind === 'failed') return one.attempts
    return wastedAttempts(routed, one.accepted.kind === 'relay' ? one.accepted.relay.legs : [one.accepted.leg])
  })
  const begun = opened.filter((one) => one.kind === 'accepted' || one.mayBeCharged === true)
  if (begun.some((one) => !isCutShort(one, routed))) return failedBesidePaid(failure, attempts)
  return { ...failure, mayBeCharged: begun.length > 0, attempts }
}

/**
 * Whether we ended the call ourselves before it gave anything, at a vendor that stops charging then. The little it may
 * cost is our loss, and another channel may still serve the request; but where none does, the failure is final.
 */
function isCutShort(one: Tried, { route }: ChatRouted): boolean {
  return one.kind === 'failed' && one.error.kind === 'client-gone' && route.channel.vendor.hangup === 'stop'
}

function answeredTogether(routed: ChatRouted, accepted: readonly Opened[]): Outcome {
  const replies = accepted.flatMap((one) => (one.kind === 'reply' ? [one] : []))
  const legs = replies.map(({ leg }) => leg)
  const choices = replies.flatMap(({ reply }) => reply.choices.slice(0, 1))
  const { body } = answerOf(routed, { choices, usage: countLegs(legs)?.usage })
  return { kind: 'answered', body, contentType: json, legs }
}

/** One leg's stream as one choice of the merged stream, which writes the end for all of them. */
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
    left: () => void (facts.isOwed = true),
    closing: () => new Uint8Array(),
  }
}
