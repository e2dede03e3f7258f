import { badRequest } from '../../base/errors.ts'
import { isGiven, type JsonObject } from '../../base/json.ts'
import type { Asked } from '../../capabilities/ask.ts'
import { chatAsk, type ChatAsk, type ChatTraits } from '../../capabilities/chat.ts'
import { checkBy } from '../check.ts'
import { plainTiers, withDoubles } from '../openai/chat-ask.ts'
import { requireModel } from '../require-model.ts'
import { inputTokensMax, opened, searchesMax } from './bounds.ts'
import { countRequest, messagesRequest } from './schema.ts'
import { kindOf, toolsIn, typeOf, unpriced } from './tools.ts'

export const versionUsual = '2023-06-01'

const checkMessages = checkBy(messagesRequest)
const checkCount = checkBy(countRequest)

/** A request for a message, checked as far as shapes and money go; the rest the vendor judges in its own words. */
export function readAsk(asked: Asked, lookUp: (model: string) => ChatTraits): ChatAsk {
  const { body } = asked
  const { model, traits } = findModel(asked, lookUp)
  refuseThread(body)
  const request = checkMessages(withDoubles(body, fractions))
  checkPricedFields(body)
  const { max_tokens: cap } = request
  return chatAsk(
    {
      ...promptFacts(asked, model, traits),
      stream: request.stream ?? false,
      outputTokensMax: Math.min(cap, traits.outputTokensMax),
      // Where it has no price it is not searched: other vendors' models answer without, and a pass-through is refused.
      searchesMax: traits.sells('webSearch') ? searchesMax(body) : 0,
    },
    traits,
  )
}

/** A request to count a prompt: nothing will be made, so nothing has to be paid for. */
export function readCountAsk(asked: Asked, lookUp: (model: string) => ChatTraits): ChatAsk {
  const { model, traits } = findModel(asked, lookUp)
  refuseThread(asked.body)
  checkCount(asked.body)
  return chatAsk({ ...promptFacts(asked, model, traits), stream: false, outputTokensMax: 0, searchesMax: 0 }, traits)
}

function findModel(asked: Asked, lookUp: (model: string) => ChatTraits) {
  const model = requireModel(asked.body)
  return { model, traits: opened(lookUp(model), betasOf(asked)) }
}

function promptFacts(asked: Asked, model: string, traits: ChatTraits) {
  const betas = betasOf(asked)
  return {
    protocol: 'anthropic',
    model,
    usageShown: true,
    choices: 1,
    inputTokensMax: inputTokensMax(asked.body, asked.bodyBytes, traits.contextTokens),
    native: asked.body,
    // Only these two shape the answer. A workspace named by a client would be one of the operator's.
    headers: {
      'anthropic-version': asked.header('anthropic-version') ?? versionUsual,
      ...(betas !== '' && { 'anthropic-beta': betas }),
    },
  } as const
}

function betasOf(asked: Asked): string {
  return asked.header('anthropic-beta') ?? ''
}

/**
 * A conversation that the vendor keeps, it keeps for the operator's account, at one vendor and one channel of it, and
 * whoever goes on from it sends only what is new: no hold could cover the rest. The official client's loop over tools
 * asks for one by itself. It is told so in the vendor's own code, and goes on with the whole conversation.
 */
function refuseThread(body: JsonObject): void {
  if (!isGiven(body['thread'])) return
  const message = "'thread' is not supported: conversations are not kept here. Send the whole conversation without it."
  throw badRequest(message, 'thread', 'thread_unsupported_request')
}

const fractions = ['temperature', 'top_p'] as const

/** The values of each field that are sold at the plain price. */
const plainValues: Readonly<Record<string, readonly string[]>> = {
  service_tier: plainTiers,
  speed: ['standard'],
  // Inference in one country costs a tenth more on newer models.
  inference_geo: ['global'],
}

/** What changes the vendor's price and has none of ours is refused, never sold at the plain price. */
function checkPricedFields(body: JsonObject): void {
  for (const [field, plain] of Object.entries(plainValues)) {
    const value = body[field]
    if (typeof value !== 'string' || plain.includes(value)) continue
    const supported = plain.map((name) => `'${name}'`).join(', ')
    throw badRequest(`Unsupported value: '${field}' may only be ${supported} here.`, field, 'unsupported_value')
  }
  if (isGiven(body['fallbacks'])) {
    throw badRequest("'fallbacks' is not supported: another model has another price.", 'fallbacks', 'unsupported_value')
  }
  for (const { tool, at } of toolsIn(body)) {
    const type = typeOf(tool)
    if (kindOf(type) === 'unpriced') throw unpriced(type, at)
  }
}
