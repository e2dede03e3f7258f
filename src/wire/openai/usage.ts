import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn, objectIn, objectsIn } from '../loose.ts'

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
  const { cachedInput, cacheWrite, cacheWriteHour } = cacheCounts(usage, prompt)
  const written = cacheWrite + cacheWriteHour
  const told = countIn(completion['reasoning_tokens'])
  const { cache: apart, reasoning } = isRead && isSaid ? besides(usage, told, [cachedInput, written]) : nothing

  const rest = isRead ? besideCache(countIn(usage['prompt_tokens']), cachedInput + written - apart) : Infinity
  const cachedAudio = countIn(objectIn(prompt['cached_tokens_details'])['audio_tokens'])
  const audioInput = Math.min(Math.max(0, countIn(prompt['audio_tokens']) - cachedAudio), rest)
  const imageOutput = countIn(completion['image_tokens'])
  const audioOutput = countIn(completion['audio_tokens'])
  const output = countIn(usage['completion_tokens']) + reasoning - imageOutput - audioOutput
  // Field by field: every answer is counted, and spreading what may be absent took a third of this function's time.
  const read: { -readonly [F in keyof Usage]: Usage[F] } = {}
  if (isRead) read.input = rest - audioInput
  read.cachedInput = cachedInput
  read.cacheWrite = cacheWrite
  if (cacheWriteHour > 0) read.cacheWriteHour = cacheWriteHour
  read.audioInput = audioInput
  if (isSaid) read.output = Math.max(0, output)
  if (imageOutput > 0) read.imageOutput = imageOutput
  read.audioOutput = audioOutput
  read.reasoning = Math.max(told, reasoning)
  return read
}

/**
 * What a prompt has beside its cached and cache-written tokens. A count that is smaller than theirs leaves them out:
 * relays copy it from Anthropic's protocol, in which these counts do not overlap.
 */
export function besideCache(prompt: number, cache: number): number {
  return prompt < cache ? prompt : prompt - cache
}

/**
 * DeepSeek has `prompt_cache_hit_tokens`, Moonshot `cached_tokens` at the top, DashScope `cache_creation_input_tokens`.
 * Some relays repeat a count under several names, and others leave all names but one at 0. Of what Anthropic wrote,
 * LiteLLM and relays built on New API say how much is kept for five minutes and for an hour, each in its own words.
 */
function cacheCounts(usage: JsonObject, prompt: JsonObject) {
  const kept = objectIn(prompt['cache_creation_token_details'])
  const minutes = largestOf(usage['claude_cache_creation_5_m_tokens'], kept['ephemeral_5m_input_tokens'])
  const cacheWriteHour = largestOf(usage['claude_cache_creation_1_h_tokens'], kept['ephemeral_1h_input_tokens'])
  const written = largestOf(
    prompt['cache_write_tokens'],
    prompt['cache_creation_input_tokens'],
    prompt['cache_creation_tokens'],
    prompt['cached_creation_tokens'],
    usage['cache_creation_input_tokens'],
    minutes + cacheWriteHour,
  )
  return {
    cachedInput: largestOf(
      prompt['cached_tokens'],
      usage['prompt_cache_hit_tokens'],
      usage['cached_tokens'],
      usage['cache_read_input_tokens'],
    ),
    cacheWrite: written - cacheWriteHour,
    cacheWriteHour,
  }
}

function largestOf(...counts: readonly (Json | undefined)[]): number {
  let largest = 0
  for (const count of counts) largest = Math.max(largest, countIn(count))
  return largest
}

const nothing = { cache: 0, reasoning: 0 }

/**
 * What the total has besides the counts of the prompt and the completion. Most vendors include reasoning in the
 * completion, but xAI counts it separately, and Google's endpoint in this protocol names no count for it. Some relays
 * leave cached input out of the prompt's count. Mistral counts audio in seconds, which cannot be told from the rest.
 */
function besides(usage: JsonObject, told: number, [cached, written]: readonly [number, number]) {
  const beside = countIn(usage['total_tokens']) - countIn(usage['prompt_tokens']) - countIn(usage['completion_tokens'])
  if (beside <= 0 || isGiven(usage['prompt_audio_seconds'])) return nothing
  if (beside !== told && [cached, written, cached + written].includes(beside)) return { cache: beside, reasoning: 0 }
  return told === 0 || told === beside ? { cache: 0, reasoning: beside } : nothing
}

/** The usage of an answer or a chunk with one choice. Moonshot puts that of a stream into the choice. */
export function usageIn({ usage, choices }: JsonObject): Usage | undefined {
  return readUsage(usage) ?? readUsage(objectsIn(choices)[0]?.['usage'])
}

/** `prompt_tokens` includes cached and cache-written tokens, and `completion_tokens` includes reasoning. */
export function writeUsage(usage: Usage): { readonly [field: string]: Json } {
  const { input = 0, cachedInput = 0, cacheWrite = 0, cacheWriteHour = 0, imageInput = 0, audioInput = 0 } = usage
  const { output = 0, audioOutput = 0, imageOutput = 0, reasoning = 0 } = usage
  const prompt = input + cachedInput + cacheWrite + cacheWriteHour + imageInput + audioInput
  const completion = output + audioOutput + imageOutput
  const written = cacheWrite + cacheWriteHour
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: cachedInput,
      audio_tokens: audioInput,
      ...(written > 0 && { cache_write_tokens: written }),
    },
    completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: audioOutput },
  }
}
