import type { JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'

/** Cached and written input are inside `input_tokens` here, reasoning inside `output_tokens`. */
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
