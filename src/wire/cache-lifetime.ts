import { excerpt } from '../base/errors.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { listValues, unsupportedValue } from './issues.ts'
import { objectIn, placedObjectsIn } from './loose.ts'

/** The fields that may say, in `ttl`, how long a prompt is kept in the cache: the request's, and that of a part. */
export const [cacheOptions, cacheBreakpoint] = ['prompt_cache_options', 'prompt_cache_breakpoint']

/** How long vendors keep a cache at their plain price. */
const plainLifetimes: readonly string[] = ['5m', '30m']

/** Refuses a cache that is to be kept for longer: writing to it costs more, for which models have no price. */
export function refuseLongCaches(body: JsonObject, list: 'messages' | 'input'): void {
  checkLifetime(body[cacheOptions], cacheOptions)
  for (const [index, item] of placedObjectsIn(body[list])) {
    for (const field of ['content', 'output'] as const) {
      for (const [at, part] of placedObjectsIn(item[field])) {
        checkLifetime(part[cacheBreakpoint], `${list}[${index}].${field}[${at}].${cacheBreakpoint}`)
      }
    }
  }
}

function checkLifetime(hint: Json | undefined, at: string): void {
  const { ttl } = objectIn(hint)
  if (typeof ttl !== 'string' || plainLifetimes.includes(ttl)) return
  throw unsupportedValue(`${at}.ttl`, `'${excerpt(ttl)}'`, `Supported values are: ${listValues(plainLifetimes)}.`)
}
