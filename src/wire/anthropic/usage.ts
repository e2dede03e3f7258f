import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn, objectIn, objectsIn } from '../loose.ts'

const inputCounts = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens']

/**
 * Reads the vendor's counts. Its three input counts do not overlap, and tokens written to the cache are split by how
 * long they are kept. The input and the output are present only where the vendor counted them: at its start a stream
 * knows only the input, and some servers of this protocol send no `message_start`.
 */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  // Compacting an overlong conversation is charged in addition to the top-level counts.
  const parts = [usage, ...objectsIn(usage['iterations']).filter(({ type }) => type === 'compaction')]
  const sum = (count: (part: JsonObject) => number) => parts.reduce((total, part) => total + count(part), 0)
  const isCounted = typeof usage['output_tokens'] === 'number'
  const isRead = inputCounts.some((name) => typeof usage[name] === 'number')
  return {
    ...(isRead && { input: sum((part) => countIn(part['input_tokens'])) }),
    cachedInput: sum((part) => countIn(part['cache_read_input_tokens'])),
    cacheWrite: sum((part) => cacheWritesIn(part).minutes),
    cacheWriteHour: sum((part) => cacheWritesIn(part).hour),
    ...(isCounted && { output: sum((part) => countIn(part['output_tokens'])) }),
    ...(isCounted && { reasoning: countIn(objectIn(usage['output_tokens_details'])['thinking_tokens']) }),
    webSearch: countIn(objectIn(usage['server_tool_use'])['web_search_requests']),
  }
}

/** The end of a stream repeats the total without its parts; the one-hour part is known from the start. */
function cacheWritesIn(usage: JsonObject): { minutes: number; hour: number } {
  const kept = objectIn(usage['cache_creation'])
  const hour = countIn(kept['ephemeral_1h_input_tokens'])
  const total = Math.max(
    countIn(usage['cache_creation_input_tokens']),
    countIn(kept['ephemeral_5m_input_tokens']) + hour,
  )
  return { minutes: total - hour, hour }
}

/**
 * Merges earlier counts with later ones: each count is a total, and one that is not repeated stays. No prompt is empty,
 * so an input of zeros, which some relays send with the output's count, is no count.
 */
export function mergeUsage(known: JsonObject | undefined, later: Json | undefined): JsonObject | undefined {
  if (!isObject(later)) return known
  const hasInput = inputCounts.some((name) => countIn(later[name]) > 0)
  const given = Object.entries(later).filter(([name, value]) => {
    return isGiven(value) && (hasInput || known?.[name] === undefined || !isOfInput(name))
  })
  return { ...known, ...Object.fromEntries(given) }
}

function isOfInput(name: string): boolean {
  return inputCounts.includes(name) || name === 'cache_creation'
}

/** At its start a stream knows only the prompt's counts; the one output token it names there is no real count. */
export function promptCounts(usage: Json | undefined): JsonObject | undefined {
  if (!isObject(usage)) return undefined
  const { output_tokens: _, output_tokens_details: __, ...prompt } = usage
  return prompt
}

/** Usage in this protocol's form, which has no counters of its own for audio and images. */
export function writeUsage(usage: Usage): JsonObject {
  const { input = 0, imageInput = 0, audioInput = 0, cachedInput = 0, cacheWrite = 0, cacheWriteHour = 0 } = usage
  const { output = 0, imageOutput = 0, audioOutput = 0, reasoning = 0, webSearch = 0 } = usage
  return {
    input_tokens: input + imageInput + audioInput,
    cache_creation_input_tokens: cacheWrite + cacheWriteHour,
    cache_read_input_tokens: cachedInput,
    cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: cacheWriteHour },
    output_tokens: output + imageOutput + audioOutput,
    output_tokens_details: { thinking_tokens: reasoning },
    server_tool_use: webSearch > 0 ? { web_search_requests: webSearch, web_fetch_requests: 0 } : null,
    service_tier: 'standard',
  }
}
