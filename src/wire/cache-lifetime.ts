import { isGiven, type Json, type JsonObject } from '../base/json.ts'
import { notSupported } from './issues.ts'
import { objectIn, placedObjectsIn } from './loose.ts'

/** The lifetime that OpenAI's price of cache writes is for. */
const pricedLifetime = '30m'

/** Refuses a cache that OpenAI keeps for longer: writing to it costs more, for which models have no price. */
export function refuseLongCaches(body: JsonObject, list: 'messages' | 'input'): void {
  checkLifetime(body['prompt_cache_options'], 'prompt_cache_options')
  for (const [index, item] of placedObjectsIn(body[list])) {
    for (const field of ['content', 'output'] as const) {
      for (const [at, part] of placedObjectsIn(item[field])) {
        checkLifetime(part['prompt_cache_breakpoint'], `${list}[${index}].${field}[${at}].prompt_cache_breakpoint`)
      }
    }
  }
}

function checkLifetime(hint: Json | undefined, at: string): void {
  const { ttl } = objectIn(hint)
  if (!isGiven(ttl) || ttl === pricedLifetime) return
  throw notSupported(`${at}.ttl`, `only '${pricedLifetime}' has a price here.`)
}
