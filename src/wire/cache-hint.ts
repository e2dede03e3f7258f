import { isObject } from '../base/json.ts'
import type { CacheHint } from '../capabilities/conversation.ts'

/**
 * The cache hint of a block, a tool or a message. It is Anthropic's, and not part of the common protocol, but gateways
 * and clients that reach Anthropic's models write it there too.
 */
export function cacheOf(carrier: object): { readonly cache?: CacheHint } {
  const control: unknown = 'cache_control' in carrier ? carrier.cache_control : undefined
  if (!isObject(control)) return {}
  return { cache: control['ttl'] === '1h' ? '1h' : '5m' }
}
