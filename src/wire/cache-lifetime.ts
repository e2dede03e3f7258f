import { excerpt } from '../base/errors.ts'
import { isObject, type Json, type JsonObject } from '../base/json.ts'
import { listValues, unsupportedValue, type WhereInBody } from './issues.ts'
import { itemsIn } from './loose.ts'

/** The fields that may say, in `ttl`, how long a prompt is kept in the cache: the request's, and that of a part. */
export const [cacheOptions, cacheBreakpoint] = ['prompt_cache_options', 'prompt_cache_breakpoint']

/** How long vendors keep a cache at their plain price. */
const plainLifetimes: readonly string[] = ['5m', '30m']

/** Refuses a cache that is to be kept for longer: writing to it costs more, for which models have no price. */
export function refuseLongCaches(body: JsonObject, list: 'messages' | 'input'): void {
  refuse(body[cacheOptions], () => cacheOptions)
  itemsIn(body[list]).forEach((item, index) => {
    if (!isObject(item)) return
    const { content, output } = item
    refuseInParts(content, () => `${list}[${index}].content`)
    refuseInParts(output, () => `${list}[${index}].output`)
  })
}

function refuseInParts(parts: Json | undefined, at: WhereInBody): void {
  if (!Array.isArray(parts)) return // the content of most messages is one text
  parts.forEach((part: Json, index) => {
    if (isObject(part)) refuse(part[cacheBreakpoint], () => `${at()}[${index}].${cacheBreakpoint}`)
  })
}

function refuse(hint: Json | undefined, at: WhereInBody): void {
  if (!isObject(hint)) return
  const { ttl } = hint
  if (typeof ttl !== 'string' || plainLifetimes.includes(ttl)) return
  throw unsupportedValue(`${at()}.ttl`, `'${excerpt(ttl)}'`, `Supported values are: ${listValues(plainLifetimes)}.`)
}
