import { jsonCall } from '../json-call.ts'
import type { Call, CallContext } from '../vendor.ts'

/** One method of one model, with the key in the header: the vendor takes it in the address too, from where it gets into logs. */
export function callTo(method: string, body: unknown, context: CallContext): Call {
  const { baseUrl, credential } = context
  return jsonCall(`${baseUrl}/v1beta/${resourceOf(context)}:${method}`, body, context, { 'x-goog-api-key': credential })
}

/** A model by its full name. Tuned models have a collection of their own, which an operator writes out. */
export function resourceOf({ upstreamModel }: CallContext): string {
  return upstreamModel.includes('/') ? upstreamModel : `models/${upstreamModel}`
}
