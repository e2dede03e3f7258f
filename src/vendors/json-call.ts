import type { JsonObject } from '../base/json.ts'
import type { Call, CallContext } from './vendor.ts'

/**
 * A call with a JSON body and our attempt id; `headers` holds at least the credential, in the vendor's form. A string
 * body is JSON already.
 */
export function jsonCall(url: string, body: unknown, { ref }: CallContext, headers: Call['headers']): Call {
  const sent = { ...headers, 'content-type': 'application/json', 'x-client-request-id': ref }
  return { url, headers: sent, body: typeof body === 'string' ? body : JSON.stringify(body) }
}

/** The credential as most vendors take it. */
export function bearer({ credential }: CallContext): { authorization: string } {
  return { authorization: `Bearer ${credential}` }
}

/** Gives the URL of a vendor's path, and the headers that all its calls have. */
export type EndpointOf = (path: string, context: CallContext) => Pick<Call, 'url' | 'headers'>

/** A call to one of these paths. */
export function jsonCallAt(reach: EndpointOf, path: string, body: string | JsonObject, context: CallContext): Call {
  const { url, headers } = reach(path, context)
  return jsonCall(url, body, context, headers)
}
