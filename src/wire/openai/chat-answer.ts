import { GatewayError, refusedInside } from '../../base/errors.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAnswer, ChatAsk } from '../../capabilities/chat.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { answerIn } from '../answer-body.ts'
import { countText } from '../estimate.ts'
import { withModel } from '../json-bytes.ts'
import { countIn, objectIn, parseLoosely, textIn } from '../loose.ts'
import { unread } from './estimate.ts'

/** A whole answer of a vendor that speaks this protocol too, with `model` as the client knows it. */
export function passAnswer(ask: ChatAsk, body: Uint8Array): ChatAnswer {
  const { json, choices } = readChoices(body)
  return {
    usage: readUsage(json['usage']),
    estimateOutput: () => Math.max(1, countText(choices, unread)),
    body: withModel(body, 0, Buffer.from(ask.model)),
  }
}

/** A vendor may say 200 and mean an error, or send a page of HTML: only an answer with choices is one. */
export function readChoices(body: Uint8Array): { json: JsonObject; choices: readonly Json[] } {
  const json = answerIn(body)
  const failure = failureIn(json)
  if (failure !== undefined) throw failure
  const { choices } = json
  if (!Array.isArray(choices)) {
    throw new GatewayError('upstream-failed', "The model's vendor sent an answer without choices.")
  }
  return { json, choices }
}

/** The vendor's overlapping numbers taken apart: cached and written input are inside `prompt_tokens`. */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (
    !isObject(usage) ||
    (typeof usage['prompt_tokens'] !== 'number' && typeof usage['completion_tokens'] !== 'number')
  ) {
    return undefined // an object without numbers counts nothing, not zero
  }
  const promptDetails = objectIn(usage['prompt_tokens_details'])
  const completionDetails = objectIn(usage['completion_tokens_details'])
  // DeepSeek says prompt_cache_hit_tokens, Moonshot cached_tokens at the top, DashScope cache_creation_input_tokens.
  const cachedInput = countIn(
    promptDetails['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens'],
  )
  const cacheWrite = countIn(promptDetails['cache_write_tokens'] ?? promptDetails['cache_creation_input_tokens'])
  const audioInput = countIn(promptDetails['audio_tokens'])
  const audioOutput = countIn(completionDetails['audio_tokens'])
  const reasoning = countIn(completionDetails['reasoning_tokens'])
  const completion = countIn(usage['completion_tokens']) + reasoningBeside(usage, reasoning)
  return {
    input: Math.max(0, countIn(usage['prompt_tokens']) - cachedInput - cacheWrite - audioInput),
    cachedInput,
    cacheWrite,
    audioInput,
    output: Math.max(0, completion - audioOutput),
    audioOutput,
    reasoning,
  }
}

/** Most vendors count reasoning inside of `completion_tokens`; xAI beside it, which its total tells. */
function reasoningBeside(usage: JsonObject, reasoning: number): number {
  const apart = countIn(usage['prompt_tokens']) + countIn(usage['completion_tokens'])
  return reasoning > 0 && countIn(usage['total_tokens']) === apart + reasoning ? reasoning : 0
}

/** What a vendor says went wrong where an answer should have been; xAI and others have a text for it, and no object. */
export function failureIn(json: JsonObject): GatewayError | undefined {
  const { error, code } = json
  if (isObject(error)) return readFailure(error)
  return textIn(error) === '' ? undefined : readFailure({ message: error, code })
}

/** An event that is named an error: one, whatever it holds. */
export function namedFailure(text: string): GatewayError {
  const json = parseLoosely(text)
  return isObject(json) ? (failureIn(json) ?? readFailure(json)) : readFailure({ message: text })
}

/** What vendors call it that they had no room for a request, no money or key of ours, or a fault of their own. */
const statuses: readonly (readonly [RegExp, status: number])[] = [
  [
    /rate_?limit|limit_requests|throttling|too_?many_?requests|quota|credit_balance|billing_hard_limit|arrearage|overdue/i,
    429,
  ],
  [/invalid_api_key|authentication_error/, 401],
  [/overloaded|slow_down|unavailable/i, 503],
  [/server_error|internal_?(?:server_?|service_?)?error/i, 500],
]

/** A vendor's error object where an answer should have been. Where nothing tells whose fault it is, its text passes on. */
export function readFailure(error: JsonObject): GatewayError {
  const message = textIn(error['message']) || "The model's vendor reported an error."
  const status = statusOf(error)
  if (status === undefined) return new GatewayError('upstream-failed', message)
  return refusedInside({ status, body: JSON.stringify({ error }) }, message)
}

/** OpenRouter and others give the status itself for a code. */
function statusOf({ code, type }: JsonObject): number | undefined {
  if (typeof code === 'number' && code >= 400 && code < 600) return code
  const words = [code, type].filter((word) => typeof word === 'string').join(' ')
  return statuses.find(([said]) => said.test(words))?.[1]
}
