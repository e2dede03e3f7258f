import { GatewayError } from '../../base/errors.ts'
import type { ChatAnswer, ChatAsk, ChatStream, ReplyName, ReplyWriter } from '../../capabilities/chat.ts'
import type { Conversation, Reply } from '../../capabilities/conversation.ts'
import { estimateReply } from '../../capabilities/estimate-reply.ts'
import { isInside, type FetchLink } from '../../upstream/links.ts'
import type { Call, CallContext, ChatAdapter } from '../../vendors/vendor.ts'
import { contextOf, didNotStream, type CallParts } from '../attempt.ts'
import type { ChatRouted } from './chat.ts'
import { inlineMedia } from './inline-media.ts'
import { countAnswer, legOfStream } from './legs.ts'
import { readersFor } from './one-call.ts'
import { translateStream } from './translate.ts'

/**
 * How one call is made and its answer brought to the client: pass-through where both speak the same protocol, otherwise
 * the ask is translated for the vendor and its reply translated back.
 */
export type Lane = {
  readonly call: Call
  readAnswer(body: Uint8Array): ChatAnswer
  openStream(): ChatStream
}

export function chatOf({ route, model, ask }: ChatRouted): ChatAdapter {
  const { chat, id } = route.channel.vendor
  if (chat === undefined) throw new GatewayError('bug', `vendor ${id} does no chat`)
  const { secondProtocol } = chat
  if (secondProtocol === undefined) return chat
  const { upstreamModel } = route
  const { reasoning, efforts } = model
  return secondProtocol.serves(ask, { upstreamModel, reasoning, efforts }) ? secondProtocol.chat : chat
}

/** The context of a call, with what only chats have. */
export function chatContextOf(routed: ChatRouted, { tenantLabel }: Pick<CallParts, 'tenantLabel'>): CallContext {
  const context = contextOf(routed, tenantLabel)
  return routed.hidesReasoning === true ? { ...context, hidesReasoning: true } : context
}

/** Undefined where client and vendor do not speak the same protocol. */
export function passingLane(routed: ChatRouted, context: CallContext): Lane | undefined {
  const { ask, codec } = routed
  const call = passedCall(routed, ask, context)
  if (call === undefined) return undefined
  return {
    call,
    readAnswer: (body) => codec.passAnswer(ask, body),
    openStream() {
      const stream = codec.passStream(ask)
      routed.onStream?.(stream)
      return stream
    },
  }
}

export function passedCall(routed: ChatRouted, ask: ChatAsk, context: CallContext): Call | undefined {
  const { protocol, pass } = chatOf(routed)
  return protocol === ask.protocol ? pass?.(ask, context) : undefined
}

/** Throws bad-request where the ask cannot be expressed in the vendor's protocol. */
export async function translatingLane(routed: ChatRouted, context: CallContext, fetchLink: FetchLink): Promise<Lane> {
  const { ask } = routed
  const chat = chatOf(routed)
  const conversation = await conversationFor(routed, ask, fetchLink)
  const readers = readersFor(chat, conversation)
  return {
    call: chat.translate(ask, conversation, context),
    readAnswer: (body) => answerOf(routed, readers.readAnswer(body)),
    openStream() {
      return translateStream(readers.openReader(), writerFor(routed), (facts) => {
        return legOfStream(routed, facts).count()?.usage
      })
    },
  }
}

/** The ask as a neutral conversation, with linked files put into it where the vendor cannot fetch them itself. */
export async function conversationFor(routed: ChatRouted, ask: ChatAsk, fetchLink: FetchLink): Promise<Conversation> {
  const conversation = routed.codec.readConversation(ask)
  const readsLink = isInside(routed.route.channel) ? readsNone : chatOf(routed).readsLink
  return readsLink === undefined ? conversation : inlineMedia(conversation, readsLink, routed, fetchLink)
}

const readsNone = () => false

/** A reply in the client's protocol. Where the vendor counted only a part of it, our estimate is shown for the rest. */
export function answerOf(routed: ChatRouted, reply: Reply): ChatAnswer {
  const blocks = reply.choices.flatMap((choice) => choice.blocks)
  const counted = {
    usage: reply.usage,
    estimateOutput: () => estimateReply(reply, routed.ask),
    images: blocks.filter(({ kind }) => kind === 'image').length,
  }
  const usage = reply.usage === undefined ? undefined : countAnswer(routed, counted).usage
  return { ...counted, body: routed.codec.writeAnswer(routed.ask, { ...reply, usage }, nameOf(routed)) }
}

/** Some relays and local servers answer whole although asked to stream. The client gets its stream, at once. */
export function answerEventsOf(routed: ChatRouted, body: Uint8Array): readonly Uint8Array[] {
  const { answerEvents } = chatOf(routed)
  if (answerEvents === undefined) throw didNotStream()
  return answerEvents(body, routed.ask.choices)
}

export function writerFor(routed: ChatRouted): ReplyWriter {
  const writer = routed.codec.openWriter(routed.ask, nameOf(routed))
  routed.onStream?.(writer)
  return writer
}

function nameOf(routed: ChatRouted): ReplyName {
  return { requestId: routed.requestId, createdAt: routed.receivedAt, elapsedMs: () => routed.elapsedMs() }
}
