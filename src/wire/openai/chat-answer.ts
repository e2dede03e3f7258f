import { GatewayError, refusedInside } from '../../base/errors.ts'
import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAnswer, ChatAsk } from '../../capabilities/chat.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { answerIn } from '../answer-body.ts'
import { countText } from '../estimate.ts'
import { withModel } from '../json-bytes.ts'
import { countIn, objectIn, objectsIn, parseLoosely, textIn } from '../loose.ts'
import { saysTooLong } from '../too-long.ts'
import { unread } from './estimate.ts'

/** A whole answer of a vendor that speaks this protocol too, with `model` replaced by our id. */
export function passAnswer(ask: ChatAsk, body: Uint8Array): ChatAnswer {
  const { json, choices } = readChoices(body)
  return {
    usage: readUsage(json['usage']),
    estimateOutput: () => Math.max(1, countText(choices, unread)),
    images: imagesIn(choices, 'message'),
    body: withModel(body, 0, Buffer.from(ask.model)),
  }
}

/** Images come as relays send them: in a list beside an empty text. */
export function imagesIn(choices: Json | undefined, place: 'message' | 'delta'): number {
  return objectsIn(choices).reduce((sum, choice) => sum + objectsIn(objectIn(choice[place])['images']).length, 0)
}

/** A vendor may send an error or an HTML page with status 200: an answer needs `choices`. */
export function readChoices(body: Uint8Array): { json: JsonObject; choices: readonly Json[] } {
  const json = answerIn(body)
  const failure = failureOf(json)
  if (failure !== undefined) throw failure
  const { choices } = json
  if (!Array.isArray(choices) || objectsIn(choices).length === 0) {
    throw new GatewayError('upstream-failed', "The model's vendor sent an answer without choices.")
  }
  return { json, choices }
}

/**
 * Splits the vendor's overlapping counts: `prompt_tokens` includes cached and cache-written input, and either may be
 * audio. A count that is not a number is left out, because it does not mean zero.
 */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  const isRead = typeof usage['prompt_tokens'] === 'number'
  const isSaid = typeof usage['completion_tokens'] === 'number'
  if (!isRead && !isSaid) return undefined
  const prompt = objectIn(usage['prompt_tokens_details'])
  const completion = objectIn(usage['completion_tokens_details'])
  const { cachedInput, cacheWrite } = cacheCounts(usage, prompt)
  const told = countIn(completion['reasoning_tokens'])
  const { input, reasoning } = isRead && isSaid ? besides(usage, told, [cachedInput, cacheWrite]) : nothing

  const rest = isRead ? Math.max(0, countIn(usage['prompt_tokens']) + input - cachedInput - cacheWrite) : Infinity
  const cachedAudio = countIn(objectIn(prompt['cached_tokens_details'])['audio_tokens'])
  const audioInput = Math.min(Math.max(0, countIn(prompt['audio_tokens']) - cachedAudio), rest)
  const imageOutput = countIn(completion['image_tokens'])
  const audioOutput = countIn(completion['audio_tokens'])
  const output = countIn(usage['completion_tokens']) + reasoning - imageOutput - audioOutput
  return {
    ...(isRead && { input: rest - audioInput }),
    cachedInput,
    cacheWrite,
    audioInput,
    ...(isSaid && { output: Math.max(0, output) }),
    ...(imageOutput > 0 && { imageOutput }),
    audioOutput,
    reasoning: Math.max(told, reasoning),
  }
}

/**
 * DeepSeek has `prompt_cache_hit_tokens`, Moonshot `cached_tokens` at the top, DashScope `cache_creation_input_tokens`.
 * Some relays repeat a count under several names, and others leave all names but one at 0.
 */
function cacheCounts(usage: JsonObject, prompt: JsonObject): { cachedInput: number; cacheWrite: number } {
  return {
    cachedInput: largestOf(
      prompt['cached_tokens'],
      usage['prompt_cache_hit_tokens'],
      usage['cached_tokens'],
      usage['cache_read_input_tokens'],
    ),
    cacheWrite: largestOf(
      prompt['cache_write_tokens'],
      prompt['cache_creation_input_tokens'],
      prompt['cache_creation_tokens'],
      usage['cache_creation_input_tokens'],
    ),
  }
}

function largestOf(...counts: readonly (Json | undefined)[]): number {
  return Math.max(...counts.map(countIn))
}

const nothing = { input: 0, reasoning: 0 }

/**
 * What the total has besides the counts of the prompt and the completion. Most vendors include reasoning in the
 * completion, but xAI counts it separately, and Google's endpoint in this protocol names no count for it. Some relays
 * leave cached input out of the prompt's count. Mistral counts audio in seconds, which cannot be told from the rest.
 */
function besides(usage: JsonObject, told: number, [cached, written]: readonly [number, number]) {
  const beside = countIn(usage['total_tokens']) - countIn(usage['prompt_tokens']) - countIn(usage['completion_tokens'])
  if (beside <= 0 || isGiven(usage['prompt_audio_seconds'])) return nothing
  if (beside !== told && [cached, written, cached + written].includes(beside)) return { input: beside, reasoning: 0 }
  return told === 0 || told === beside ? { input: 0, reasoning: beside } : nothing
}

/** The usage of an answer or a chunk with one choice. Moonshot puts that of a stream into the choice. */
export function usageIn({ usage, choices }: JsonObject): Usage | undefined {
  return readUsage(usage) ?? readUsage(objectsIn(choices)[0]?.['usage'])
}

/**
 * The failure that an answer or a chunk of it tells of, if it does. OpenRouter puts the failure of a model's host into
 * each choice, beside an empty message.
 */
export function failureOf(json: JsonObject): GatewayError | undefined {
  const told = failureIn(json)
  if (told !== undefined) return told
  const failures = objectsIn(json['choices']).map(failureIn)
  return failures.every((each) => each !== undefined) ? failures[0] : undefined
}

/**
 * The error in place of an answer, if there is one; xAI and others send a string instead of an object, hosts of vLLM the
 * object itself, and MiniMax a number of its own, which is zero beside an answer.
 */
export function failureIn(json: JsonObject): GatewayError | undefined {
  const { error, code, object, base_resp: base } = json
  if (isObject(error)) return readFailure(error)
  if (object === 'error') return readFailure(json)
  if (countIn(objectIn(base)['status_code']) > 0) return refusedInside({ status: 200, body: JSON.stringify(json) })
  return textIn(error) === '' ? undefined : readFailure({ message: error, code })
}

/** An event named `error` is a failure, whatever it holds. */
export function namedFailure(text: string): GatewayError {
  const json = parseLoosely(text)
  return isObject(json) ? (failureIn(json) ?? readFailure(json)) : readFailure({ message: text })
}

/**
 * The codes by which vendors report a rate limit, missing funds, a bad credential, overload, and whose fault it is. What
 * a filter holds back is the request's fault: counted as the vendor's, a customer's words would set a channel aside.
 */
const statuses: readonly (readonly [RegExp, status: number])[] = [
  [
    /rate_?limit|limit_requests|throttling|too_?many_?requests|quota|credit_balance|billing_hard_limit|billing_not_active|access_terminated|arrearage|overdue|\b1113\b/i,
    429,
  ],
  [/invalid_api_key|authentication_error/, 401],
  [/overloaded|slow_down|unavailable/i, 503],
  [/server_error|internal_?(?:server_?|service_?)?error/i, 500],
  [
    /context_length|invalid_?request|content_?(?:policy|filter)|moderation_blocked|inspection|sensitive|user_error/i,
    400,
  ],
]

/** Reads an error object that came in place of an answer. Where no code tells whose fault it is, its text passes on. */
export function readFailure(error: JsonObject): GatewayError {
  const message = textIn(error['message']) || "The model's vendor reported an error."
  // LM Studio streams this error without a code, and clients have to learn of it as a refusal.
  const status = statusOf(error) ?? (saysTooLong(message) ? 400 : undefined)
  if (status === undefined) return new GatewayError('upstream-failed', message)
  return refusedInside({ status, body: JSON.stringify({ error }) }, message)
}

/** OpenRouter and others put the HTTP status itself into `code`. */
function statusOf({ code, type }: JsonObject): number | undefined {
  if (typeof code === 'number' && code >= 400 && code < 600) return code
  const words = [code, type].filter((word) => typeof word === 'string').join(' ')
  return statuses.find(([said]) => said.test(words))?.[1]
}
