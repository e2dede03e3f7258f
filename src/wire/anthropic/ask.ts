import { badRequest } from '../../base/errors.ts'
import { isGiven, type JsonObject } from '../../base/json.ts'
import type { ReceivedRequest } from '../../capabilities/ask.ts'
import { chatAsk, type ChatAsk, type ChatTraits } from '../../capabilities/chat.ts'
import { plainTiers } from '../chat-rules.ts'
import { checkSpellingInside, checkSpellingOf } from '../check-spelling.ts'
import { checkBy } from '../check.ts'
import { notSupported } from '../issues.ts'
import { withDoubles } from '../number-field.ts'
import { requireModel } from '../require-model.ts'
import { refuseRerouting, reroutingFields } from '../rerouting.ts'
import { inputTokensMax, withBetaLimits, searchesMax } from './bounds.ts'
import { countRequest, messagesRequest } from './schema.ts'
import { kindOf, toolsIn, unpriced } from './tools.ts'

export const versionUsual = '2023-06-01'

const checkMessages = checkBy(messagesRequest)
const checkCount = checkBy(countRequest)
const checkSpelling = checkSpellingOf([
  ...Object.keys(messagesRequest.shape),
  'thread',
  'plugins',
  'container',
  'mcp_servers',
  ...reroutingFields,
])

/** The fields in which media, links and hosted tools are looked for. */
const checkSpellingOfBlocks = checkSpellingInside(
  ['role', 'type', 'text', 'url', 'data', 'file_id'],
  ['messages', 'system', 'content', 'source', 'tools'],
)

/** Reads a message request and checks its shape and what it may cost; the vendor judges the rest in its own words. */
export function readAsk(asked: ReceivedRequest, lookUp: (model: string) => ChatTraits): ChatAsk {
  const { body } = asked
  const { model, traits } = findModel(asked, lookUp)
  checkSpelling(body)
  refuseThread(body)
  const request = checkMessages(withDoubles(body, fractions), body)
  checkSpellingOfBlocks(body)
  checkPricedFields(body)
  const { max_tokens: cap } = request
  return chatAsk(
    {
      ...promptFacts(asked, model, traits),
      stream: request.stream ?? false,
      outputTokensMax: Math.min(cap, traits.outputTokensMax),
      // Without a price there is no search: a translated ask goes out without the tool, and a pass-through is refused.
      searchesMax: traits.sells('webSearch') ? searchesMax(body) : 0,
    },
    traits,
  )
}

/** Reads a request to count a prompt. It makes no output, so it needs no hold. */
export function readCountAsk(asked: ReceivedRequest, lookUp: (model: string) => ChatTraits): ChatAsk {
  const { model, traits } = findModel(asked, lookUp)
  refuseThread(asked.body)
  checkCount(asked.body)
  return chatAsk({ ...promptFacts(asked, model, traits), stream: false, outputTokensMax: 0, searchesMax: 0 }, traits)
}

function findModel(asked: ReceivedRequest, lookUp: (model: string) => ChatTraits) {
  const model = requireModel(asked.body)
  return { model, traits: withBetaLimits(lookUp(model), betasOf(asked)) }
}

function promptFacts(asked: ReceivedRequest, model: string, traits: ChatTraits) {
  const betas = betasOf(asked)
  return {
    protocol: 'anthropic',
    model,
    usageShown: true,
    choices: 1,
    inputTokensMax: inputTokensMax(asked.body, asked.bodyBytes, traits.contextTokens),
    native: asked.body,
    // Only these two headers affect the answer. A workspace header would name one of the operator's workspaces.
    headers: {
      'anthropic-version': asked.header('anthropic-version') ?? versionUsual,
      ...(betas !== '' && { 'anthropic-beta': betas }),
    },
  } as const
}

function betasOf(asked: ReceivedRequest): string {
  return asked.header('anthropic-beta') ?? ''
}

/**
 * The vendor keeps a thread under the operator's account, at one channel, and a client that continues it sends only the
 * new part: no hold could cover the rest. The official client's tool loop asks for a thread by itself. The vendor's own
 * error code makes it continue with the whole conversation.
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
  // Inference in a single country costs a tenth more on newer models.
  inference_geo: ['global'],
}

/** Refuses a field that changes the vendor's price and has no price of ours; it is never sold at the plain price. */
function checkPricedFields(body: JsonObject): void {
  for (const [field, plain] of Object.entries(plainValues)) {
    const value = body[field]
    if (typeof value !== 'string' || plain.includes(value)) continue
    const supported = plain.map((name) => `'${name}'`).join(', ')
    throw badRequest(`Unsupported value: '${field}' may only be ${supported} here.`, field, 'unsupported_value')
  }
  refuseRerouting(body)
  // OpenRouter serves this protocol too, and would search the web in its own way, at its own price.
  if (isGiven(body['plugins'])) throw notSupported('plugins', 'hosted search is a tool here.')
  for (const placed of toolsIn(body)) if (kindOf(placed.tool) === 'unpriced') throw unpriced(placed)
}
