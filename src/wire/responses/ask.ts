import { badRequest, excerpt } from '../../base/errors.ts'
import { isGiven, without } from '../../base/json.ts'
import type { ReceivedRequest } from '../../capabilities/ask.ts'
import { chatAsk, type ChatAsk, type ChatTraits } from '../../capabilities/chat.ts'
import { cacheBreakpoint, cacheOptions, refuseLongCaches } from '../cache-lifetime.ts'
import { effortsOf, plainTiers, searchesMax } from '../chat-rules.ts'
import { checkSpellingInside, checkSpellingOf } from '../check-spelling.ts'
import { checkBy } from '../check.ts'
import { listValues, notSupported } from '../issues.ts'
import { withDoubles } from '../number-field.ts'
import { requireModel } from '../require-model.ts'
import { refuseRerouting, reroutingFields } from '../rerouting.ts'
import { inputTokensMax } from './bounds.ts'
import { refusedFields, refuseFields } from './refused.ts'
import { responsesRequest, type ResponsesRequest } from './schema.ts'
import { offeredTools, placedTools, webSearches } from './tools.ts'

const checkRequest = checkBy(responsesRequest)
const checkSpelling = checkSpellingOf([
  ...Object.keys(responsesRequest.shape),
  ...refusedFields,
  ...reroutingFields,
  cacheOptions,
])

/** The fields in which media, links, hosted tools and the lifetime of a cache are looked for. */
const checkSpellingOfParts = checkSpellingInside(
  ['role', 'type', 'text', 'image_url', 'file_url', 'file_data', 'file_id', 'data', 'ttl'],
  ['input', 'content', 'output', 'input_audio', 'tools', cacheOptions, cacheBreakpoint],
)

/** On a reasoning model these fields have no effect and cause no error, as in chat. */
const ignoredWhenReasoning: ReadonlySet<string> = new Set(['top_p', 'top_logprobs'])

export function readAsk({ body, bodyBytes }: ReceivedRequest, lookUp: (model: string) => ChatTraits): ChatAsk {
  const model = requireModel(body)
  const traits = lookUp(model)
  checkSpelling(body)
  // Before the schema, because a client that continues a stored answer may send no input at all.
  refuseFields(body)
  refuseRerouting(body)
  const native = traits.reasoning ? without(body, ignoredWhenReasoning) : body
  const request = checkRequest(withDoubles(native, fractions), body)
  checkSpellingOfParts(native)
  checkFieldsTogether(request)
  checkModelRules(request, traits)
  checkPrices(request, traits)
  refuseLongCaches(native, 'input')
  const searches = searchesOf(request)
  return chatAsk(
    {
      protocol: 'responses',
      model,
      stream: request.stream ?? false,
      usageShown: true,
      choices: 1,
      outputTokensMax: Math.min(request.max_output_tokens ?? traits.outputTokensMax, traits.outputTokensMax),
      // What a search finds is read as input, and only the context bounds it.
      inputTokensMax: searches > 0 ? traits.contextTokens : inputTokensMax(request, bodyBytes, traits.contextTokens),
      searchesMax: searches,
      native,
      headers: {},
    },
    traits,
  )
}

const fractions = ['temperature', 'top_p'] as const

/** Command-line tools send `tool_choice: auto` and `parallel_tool_calls` whether there are tools or not. */
function checkFieldsTogether(request: ResponsesRequest): void {
  const { stream, stream_options: options, tool_choice: choice } = request
  if (isGiven(options) && stream !== true) {
    throw badRequest("'stream_options' is only allowed when 'stream' is true.", 'stream_options')
  }
  if (!isGiven(choice) || choice === 'auto' || choice === 'none') return
  if (placedTools(request).length === 0) {
    throw badRequest("'tool_choice' is only allowed when 'tools' are given.", 'tool_choice')
  }
  // `offeredTools` also refuses a list of allowed tools that names an unknown one.
  const isAnyOffered = offeredTools(request).size > 0 || webSearches(request).length > 0
  const isFree = typeof choice === 'object' && choice.type === 'allowed_tools' && choice.mode === 'auto'
  if (isAnyOffered || isFree) return
  throw badRequest("'tool_choice' asks for a call of the 'tools', and none of them is offered.", 'tool_choice')
}

function checkModelRules({ temperature, reasoning }: ResponsesRequest, traits: ChatTraits): void {
  if (traits.reasoning && isGiven(temperature) && temperature !== 1) {
    throw unsupported('temperature', String(temperature), traits, 'Only the default (1) value is supported.')
  }
  const effort = reasoning?.effort
  if (isGiven(effort) && traits.refusesEffort === true) {
    const message = `Unsupported parameter: 'reasoning.effort' is not supported with the '${traits.id}' model.`
    throw badRequest(message, 'reasoning.effort', 'unsupported_parameter')
  }
  const supported = effortsOf(traits)
  if (isGiven(effort) && !supported.includes(effort)) {
    throw unsupported(
      'reasoning.effort',
      `'${excerpt(effort)}'`,
      traits,
      `Supported values are: ${listValues(supported)}.`,
    )
  }
}

/** Refuses a field that changes the vendor's price and has no price of ours; it is never sold at the plain price. */
function checkPrices(request: ResponsesRequest, traits: ChatTraits): void {
  const { service_tier: tier } = request
  if (isGiven(tier) && !plainTiers.includes(tier)) {
    throw unsupported('service_tier', `'${excerpt(tier)}'`, traits, `Supported values are: ${listValues(plainTiers)}.`)
  }
  for (const { tool, at } of webSearches(request)) {
    if (!traits.sells('webSearch')) {
      const message = `The tool '${tool.type}' is not supported: hosted search has no price on this model.`
      throw badRequest(message, `${at}.type`, 'unsupported_value')
    }
    for (const field of ['filters', 'user_location'] as const) {
      if (isGiven(tool[field])) throw notSupported(`${at}.${field}`, 'web searches cannot be restricted here.')
    }
  }
}

/** The client's own limit on hosted tool calls, where it gives one, up to ours. */
function searchesOf(request: ResponsesRequest): number {
  if (request.tool_choice === 'none' || webSearches(request).length === 0) return 0
  return Math.min(searchesMax, request.max_tool_calls ?? searchesMax)
}

function unsupported(param: string, value: string, { id }: ChatTraits, supported: string) {
  const message = `Unsupported value: ${value} is not supported with the '${id}' model. ${supported}`
  return badRequest(message, param, 'unsupported_value')
}
