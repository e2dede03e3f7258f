import type { GatewayError } from '../../base/errors.ts'
import { isObject, type Json } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { itemsIn, objectIn, parseLoosely } from '../../wire/loose.ts'
import { openaiNewer } from '../../wire/openai/write-thinking.ts'
import { isNative, passAsk } from '../../wire/responses/pass-ask.ts'
import { readAnswer } from '../../wire/responses/read-answer.ts'
import { openReader } from '../../wire/responses/reply-reader.ts'
import { writeAsk } from '../../wire/responses/write-ask.ts'
import { jsonCallAt, type Reach } from '../json-call.ts'
import type { AskedModel, Call, CallContext, ChatAdapter } from '../vendor.ts'

// The vendor refuses a smaller cap in this protocol, and in chat it does not.
const outputTokensMin = 16

// Models that are not served on chat completions at all.
const onlyHere = /^(?:gpt-5[\w.-]*-(?:codex|pro)|o\d-pro|codex-)\b/
// To these, chat completions refuse tools beside the effort that they have by themselves, too.
const thinksByItself = /^gpt-(?:5\.(?:[6-9]|\d{2})|[6-9])/

/**
 * The newer protocol of OpenAI, for models that think: there they do so beside tools, their thoughts can be shown and sent
 * back, and clients of the same protocol are understood in their own words.
 */
export function responsesAt(reach: Reach): NonNullable<ChatAdapter['other']> {
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
      translate: (ask, conversation, context) => callWith(writeAsk(ask, conversation, context), context),
      readAnswer,
      openReader,
      hidesThoughts,
    },
  }
}

function serves(ask: ChatAsk, { upstreamModel, reasoning }: AskedModel): boolean {
  if (onlyHere.test(upstreamModel)) return true
  if (!reasoning || ask.outputTokensMax < outputTokensMin) return false
  return ask.protocol !== 'openai' || isRefusedInChat(ask, upstreamModel)
}

/** A client of chat completions is passed on there, unless the vendor would send it here or takes it here alone. */
function isRefusedInChat({ native }: ChatAsk, upstreamModel: string): boolean {
  const { tools, reasoning_effort: effort, messages } = native
  const functions = itemsIn(tools).filter((tool) => isObject(tool) && tool['type'] === 'function')
  if (functions.length < itemsIn(tools).length) return false
  if (itemsIn(messages).some(showsMore)) return true
  if (functions.length === 0) return false
  return typeof effort === 'string'
    ? effort !== 'none' && openaiNewer.test(upstreamModel)
    : thinksByItself.test(upstreamModel)
}

/** Whether it is a result with more than words. */
function showsMore(message: Json): boolean {
  const { role, content } = objectIn(message)
  return role === 'tool' && itemsIn(content).some((part) => objectIn(part)['type'] !== 'text')
}

/** An organization that the vendor has not verified is not shown what models think, and refused whatever asks for it. */
function hidesThoughts({ message, details }: GatewayError): boolean {
  const { param } = objectIn(objectIn(parseLoosely(details.refusal?.body ?? ''))['error'])
  // From its beginning on: what is said of a request may repeat words of its own.
  return param === 'reasoning.summary' && message.startsWith('Your organization must be verified')
}
