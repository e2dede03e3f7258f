import type { JsonObject } from '../base/json.ts'
import type { Call, CallContext } from './vendor.ts'

/** A call with a JSON body and our id of the attempt; `headers` has at least the key, as this vendor takes it. */
export function jsonCall(url: string, body: unknown, { ref }: CallContext, headers: Call['headers']): Call {
  const sent = { ...headers, 'content-type': 'application/json', 'x-client-request-id': ref }
  return { url, headers: sent, body: JSON.stringify(body) }
}

/** The key as most vendors take it. */
export function bearer({ credential }: CallContext): { authorization: string } {
  return { authorization: `Bearer ${credential}` }
}

/** Where a vendor's paths are, and the headers that every call of it has. */
export type Reach = (path: string, context: CallContext) => Pick<Call, 'url' | 'headers'>

/** A call to one of these paths. What is a text is JSON already. */
export function jsonCallAt(reach: Reach, path: string, body: string | JsonObject, context: CallContext): Call {
  const { url, headers } = reach(path, context)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { url, headers: { ...headers, 'content-type': 'application/json' }, body: text }
}
