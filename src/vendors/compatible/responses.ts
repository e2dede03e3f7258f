import type { GatewayError } from '../../base/errors.ts'
import { isObject, type Json } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import type { Conversation } from '../../capabilities/conversation.ts'
import { invalid } from '../../wire/issues.ts'
import { itemsIn, objectIn, parseLoosely } from '../../wire/loose.ts'
import { isLegacy } from '../../wire/openai/legacy-functions.ts'
import { openaiNewer } from '../../wire/openai/write-thinking.ts'
import { isNative, passAsk } from '../../wire/responses/pass-ask.ts'
import { readAnswer } from '../../wire/responses/read-answer.ts'
import { openReader } from '../../wire/responses/reply-reader.ts'
import { writeAsk } from '../../wire/responses/write-ask.ts'
import { jsonCallAt, type EndpointOf } from '../json-call.ts'
import type { AskedModel, Call, CallContext, ChatAdapter } from '../vendor.ts'

// The vendor refuses a smaller output cap in this protocol, but not in chat completions.
const outputTokensMin = 16

// Models that are not served on chat completions at all.
const onlyHere = /^(?:gpt-5[\w.-]*-(?:codex|pro)|o\d-pro|codex-)\b/
// With these, chat completions refuse tools even where the client gives no effort, because they think by default.
const thinksByItself = /^gpt-(?:5\.(?:[6-9]|\d{2})|[6-9])/
// With these, chat completions refuse tools even if the model does not think.
const toolsOnlyHere = /^gpt-(?:6\.\d|[7-9])/

/**
 * OpenAI's newer protocol, for models that think: in it they can think and use tools at once, their reasoning can be
 * shown and sent back, and clients of the same protocol are passed through.
 */
export function responsesAt(reach: EndpointOf): NonNullable<ChatAdapter['secondProtocol']> {
  function callWith(body: string, context: CallContext): Call {
    return jsonCallAt(reach, '/responses', body, context)
  }

  return {
    serves,
    chat: {
      protocol: 'responses',
      choicesMax: 1,
      pass(ask, context) {
        const findsTools = openaiNewer.test(context.upstreamModel)
        return isNative(ask, findsTools) ? callWith(passAsk(ask, context), context) : undefined
      },
      translate(ask, conversation, context) {
        refuseLowCap(ask, conversation)
        return callWith(writeAsk(ask, conversation, context), context)
      },
      readAnswer,
      openReader,
      refusedToShowReasoning,
    },
  }
}

function serves(ask: ChatAsk, model: AskedModel): boolean {
  if (onlyHere.test(model.upstreamModel)) return true
  if (!model.reasoning) return false
  if (ask.protocol === 'openai') return isRefusedInChat(ask, model.upstreamModel)
  if (ask.outputTokensMax >= outputTokensMin) return true
  // Where neither protocol takes the ask, this one's refusal is about the cap, which the client can raise.
  return itemsIn(ask.native['tools']).some(isCallable) && !callsInChat(model)
}

/** The vendor's own refusal would name a field that clients of other protocols did not send. */
function refuseLowCap(ask: ChatAsk, { outputTokensMax: cap }: Conversation): void {
  if (cap === undefined || cap >= outputTokensMin) return
  throw invalid(capFieldOf(ask, cap), `this model takes at least ${outputTokensMin}, not ${cap}`)
}

/** The field in which the client gave this cap. Chat has two, of which the smaller counts. */
function capFieldOf({ protocol, native }: ChatAsk, cap: number): string {
  if (protocol === 'responses') return 'max_output_tokens'
  return native['max_completion_tokens'] === cap ? 'max_completion_tokens' : 'max_tokens'
}

/** A hosted web search is dropped on the way to this vendor, in either protocol. */
function isCallable(tool: Json): boolean {
  const { type } = objectIn(tool)
  return typeof type !== 'string' || !type.startsWith('web_search')
}

/** Whether the model may be offered tools in chat completions at all, if need be without thinking. */
function callsInChat({ upstreamModel, efforts }: AskedModel): boolean {
  return !openaiNewer.test(upstreamModel) || (efforts.includes('none') && !toolsOnlyHere.test(upstreamModel))
}

/** An ask in chat completions stays there, unless the vendor would refuse it there or takes it only in `/responses`. */
function isRefusedInChat(ask: ChatAsk, upstreamModel: string): boolean {
  const { tools, reasoning_effort: effort, messages } = ask.native
  const functions = itemsIn(tools).filter((tool) => isObject(tool) && tool['type'] === 'function')
  if (functions.length < itemsIn(tools).length) return false
  if (itemsIn(messages).some(showsMore)) return true
  // Older clients offer the same functions in a field of their own.
  if (functions.length === 0 && !isLegacy(ask)) return false
  if (toolsOnlyHere.test(upstreamModel)) return true
  return typeof effort === 'string'
    ? effort !== 'none' && openaiNewer.test(upstreamModel)
    : thinksByItself.test(upstreamModel)
}

/** Whether the message is a tool result with more than text. */
function showsMore(message: Json): boolean {
  const { role, content } = objectIn(message)
  return role === 'tool' && itemsIn(content).some((part) => objectIn(part)['type'] !== 'text')
}

/** OpenAI shows no reasoning to an organization it has not verified, and refuses every request that asks for it. */
function refusedToShowReasoning({ message, details }: GatewayError): boolean {
  const { param } = objectIn(objectIn(parseLoosely(details.refusal?.body ?? ''))['error'])
  // Matched from the beginning, because a message about a request may quote the client's own words.
  return param === 'reasoning.summary' && message.startsWith('Your organization must be verified')
}
