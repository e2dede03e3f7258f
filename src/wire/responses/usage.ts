import { isObject, type JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn, objectIn, objectsIn } from '../loose.ts'
import { besideCache } from '../openai/usage.ts'

/** What a response used. The vendor's searches are charged by the call, and counted by their items. */
export function readUsage({ usage, output }: JsonObject): Usage | undefined {
  if (!isObject(usage)) return undefined
  // A count that is not a number does not mean zero.
  const isRead = typeof usage['input_tokens'] === 'number'
  const isSaid = typeof usage['output_tokens'] === 'number'
  if (!isRead && !isSaid) return undefined
  const { cached_tokens: cached, cache_write_tokens: written } = objectIn(usage['input_tokens_details'])
  const cachedInput = countIn(cached)
  const cacheWrite = countIn(written)
  const webSearch = objectsIn(output).filter(isSearch).length
  return {
    ...(isRead && { input: besideCache(countIn(usage['input_tokens']), cachedInput + cacheWrite) }),
    cachedInput,
    cacheWrite,
    ...(isSaid && { output: countIn(usage['output_tokens']) }),
    reasoning: countIn(objectIn(usage['output_tokens_details'])['reasoning_tokens']),
    ...(webSearch > 0 && { webSearch }),
  }
}

/** Only searches are charged; opening a page and searching within one are free. */
export function isSearch({ type, action }: JsonObject): boolean {
  const kind = objectIn(action)['type']
  return type === 'web_search_call' && (kind === undefined || kind === 'search')
}

/** In this protocol `input_tokens` includes cached and cache-written tokens, and `output_tokens` includes reasoning. */
export function writeUsage(usage: Usage): JsonObject {
  const { input = 0, cachedInput = 0, cacheWrite = 0, cacheWriteHour = 0, imageInput = 0, audioInput = 0 } = usage
  const { output = 0, audioOutput = 0, imageOutput = 0, reasoning = 0 } = usage
  const inputTokens = input + cachedInput + cacheWrite + cacheWriteHour + imageInput + audioInput
  const outputTokens = output + audioOutput + imageOutput
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInput, cache_write_tokens: cacheWrite + cacheWriteHour },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: inputTokens + outputTokens,
  }
}
