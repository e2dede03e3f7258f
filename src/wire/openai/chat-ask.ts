import { badRequest, excerpt } from '../../base/errors.ts'
import { isGiven, without, type Json, type JsonObject } from '../../base/json.ts'
import type { ReceivedRequest } from '../../capabilities/ask.ts'
import { chatAsk, type ChatAsk, type ChatTraits } from '../../capabilities/chat.ts'
import { cacheBreakpoint, cacheOptions, refuseLongCaches } from '../cache-lifetime.ts'
import { effortsOf, plainTiers, searchesMax } from '../chat-rules.ts'
import { checkSpellingInside, checkSpellingOf } from '../check-spelling.ts'
import { checkBy } from '../check.ts'
import { imageTokensMax } from '../estimate.ts'
import { invalid, listValues, notSupported, unsupportedValue } from '../issues.ts'
import { withDoubles } from '../number-field.ts'
import { requireModel } from '../require-model.ts'
import { refuseRerouting, reroutingFields } from '../rerouting.ts'
import { chatRequest, type ChatRequest } from './chat-schema.ts'
import { withToolObject } from './tool-choice.ts'

const checkRequest = checkBy(chatRequest)

/** Rule 1 of the specification: on a reasoning model these fields have no effect and cause no error. */
const ignoredWhenReasoning: ReadonlySet<string> = new Set([
  'top_p',
  'stop',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'modalities',
  'audio',
  'prediction',
])

export function readAsk({ body, bodyBytes }: ReceivedRequest, lookUp: (model: string) => ChatTraits): ChatAsk {
  const model = requireModel(body)
  const traits = lookUp(model)

  checkSpelling(body)
  const native = traits.reasoning ? without(body, ignoredWhenReasoning) : body
  const request = checkRequest(withDoubles(native, fractions), body)
  checkSpellingOfParts(native)
  checkFieldsTogether(request)
  checkModelRules(request, traits)
  checkPricedFields(request, body, traits)

  // What a search finds is read as input, and only the context bounds it.
  const searches = isGiven(body['web_search_options']) ? searchesMax : 0
  return chatAsk(
    {
      protocol: 'openai',
      model,
      stream: request.stream ?? false,
      usageShown: request.stream_options?.include_usage ?? false,
      choices: request.n ?? 1,
      outputTokensMax: Math.min(outputCapOf(request) ?? traits.outputTokensMax, traits.outputTokensMax),
      inputTokensMax: searches > 0 ? traits.contextTokens : boundByBytes(request, bodyBytes, traits),
      searchesMax: searches,
      native: withToolObject(native, request),
      headers: {},
    },
    traits,
  )
}

/**
 * The client's output limit under either of its names. OpenAI refuses both together and other vendors read only one of
 * them; a client that writes both, to be understood everywhere, gets the smaller one.
 */
export function outputCapOf(request: Pick<ChatRequest, 'max_tokens' | 'max_completion_tokens'>): number | undefined {
  const { max_completion_tokens: newer, max_tokens: older } = request
  if (!isGiven(newer)) return older ?? undefined
  return isGiven(older) ? Math.min(newer, older) : newer
}

const fractions = ['temperature', 'top_p', 'frequency_penalty', 'presence_penalty'] as const

function checkFieldsTogether(request: ChatRequest): void {
  if (isGiven(request.top_logprobs) && request.logprobs !== true) throw needs('top_logprobs', "when 'logprobs' is true")
  if (isGiven(request.stream_options) && request.stream !== true) throw needs('stream_options', "when 'stream' is true")
  if (!request.tools?.length) {
    if (isGiven(request.tool_choice)) throw needs('tool_choice', "when 'tools' are given")
    if (isGiven(request.parallel_tool_calls)) throw needs('parallel_tool_calls', "when 'tools' are given")
  }
  if (isGiven(request.audio) && !request.modalities?.includes('audio')) {
    throw needs('audio', 'when \'modalities\' holds "audio"')
  }
}

function needs(field: keyof ChatRequest, what: string) {
  return badRequest(`'${field}' is only allowed ${what}.`, field, 'invalid_value')
}

function checkModelRules(request: ChatRequest, traits: ChatTraits): void {
  if ((request.n ?? 1) > traits.choicesMax) {
    throw invalid('n', `this model gives at most ${traits.choicesMax} choices`)
  }
  const { temperature, reasoning_effort: effort } = request
  if (traits.reasoning && isGiven(temperature) && temperature !== 1) {
    throw unsupportedValue('temperature', temperature, 'Only the default (1) value is supported.')
  }
  if (isGiven(effort) && traits.refusesEffort === true) {
    const message = "Unsupported parameter: 'reasoning_effort' is not supported with this model."
    throw badRequest(message, 'reasoning_effort', 'unsupported_parameter')
  }
  const supported = effortsOf(traits)
  if (isGiven(effort) && !supported.includes(effort)) {
    const list = `Supported values are: ${listValues(supported)}.`
    throw unsupportedValue('reasoning_effort', `'${excerpt(effort)}'`, list)
  }
}

const searchFields = ['web_search_options', 'enable_search', 'search_options', 'search_parameters', 'plugins'] as const

/** Fields of single vendors by which an answer would cost what no hold bounds, and why they are refused. */
const unsold = Object.entries({
  // DashScope runs code that the model writes, and the model reads the output, round after round.
  enable_code_interpreter: 'hosted tools have no price',
  // Azure asks the search index that the request names, as the operator's own resource, and the model reads the result.
  data_sources: 'sources that the vendor reads as the operator are not open to clients',
  // xAI answers with an id, and charges for an answer that can be fetched later only with the operator's key.
  deferred: 'answers are not kept here',
})

const checkSpelling = checkSpellingOf([
  ...Object.keys(chatRequest.shape),
  ...reroutingFields,
  ...searchFields,
  ...unsold.map(([field]) => field),
  cacheOptions,
])

const mediaFields = ['audio', 'image_url', 'input_audio', 'file', 'video_url', 'video', 'audio_url']

/** The fields in which media, links, hosted tools and the lifetime of a cache are looked for. */
const checkSpellingOfParts = checkSpellingInside(
  ['role', 'type', 'text', 'url', 'data', 'file_data', 'file_id', 'ttl'],
  ['messages', 'content', ...mediaFields, 'tools', cacheOptions, cacheBreakpoint],
)

/** Some clients write `false` or an empty list where they mean nothing. */
function isAsked(value: Json | undefined): boolean {
  return isGiven(value) && value !== false && !(Array.isArray(value) && value.length === 0)
}

/** Refuses a field that changes the vendor's price and has no price of ours; it is never sold at the plain price. */
function checkPricedFields(request: ChatRequest, body: JsonObject, traits: ChatTraits): void {
  const { service_tier: tier } = request
  if (isGiven(tier) && !plainTiers.includes(tier)) {
    throw unsupportedValue('service_tier', `'${excerpt(tier)}'`, `Supported values are: ${listValues(plainTiers)}.`)
  }
  // Google writes modalities in capitals, and its models are also sold by servers of this protocol.
  const modalities = request.modalities?.map((modality) => modality.toLowerCase())
  for (const kind of ['audio', 'image'] as const) {
    if (modalities?.includes(kind) && !traits.sells(`${kind}Output`)) {
      throw unsupportedValue('modalities', `'${kind}'`, `This model has no price for ${kind} output.`)
    }
  }
  refuseLongCaches(body, 'messages')
  refuseRerouting(body)
  for (const [field, why] of unsold) {
    if (isAsked(body[field])) throw notSupported(field, `${why}.`)
  }
  for (const field of searchFields) {
    if (isAsked(body[field]) && !traits.sells('webSearch')) {
      throw notSupported(field, 'hosted search has no price on this model.')
    }
  }
}

/**
 * Refuses hosted search where the ask passes on to a vendor of this protocol, even if the model has a price for it:
 * such a vendor's answer does not say how often it searched.
 */
export function refuseUncountedSearch(body: JsonObject): void {
  const field = searchFields.find((name) => isAsked(body[name]))
  if (field !== undefined)
    throw notSupported(field, 'the vendor that serves this model here does not count its searches.')
}

function boundByBytes(request: ChatRequest, bodyBytes: number, traits: ChatTraits): number {
  return Math.min(traits.contextTokens, bodyBytes + mediaTokensMax(request, traits))
}

function mediaTokensMax(request: ChatRequest, traits: ChatTraits): number {
  let tokens = 0
  for (const message of request.messages) {
    // An earlier answer in audio is named by its id, and the model hears all of it again.
    if (message.role === 'assistant' && isGiven(message.audio)) tokens += traits.contextTokens
    if (message.role !== 'user' && message.role !== 'tool') continue
    if (typeof message.content === 'string') continue
    for (const part of message.content) {
      if (part.type === 'text') continue
      // Audio, video and files have no published bound except the context.
      tokens += part.type === 'image_url' ? imageTokensMax : traits.contextTokens
    }
  }
  return tokens
}
