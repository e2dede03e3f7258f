import { jsonCall } from '../json-call.ts'
import type { Call, CallContext } from '../vendor.ts'

/** Calls a method of a model. The key goes in a header: Google takes it in the URL too, but URLs end up in logs. */
export function callTo(method: string, body: unknown, context: CallContext): Call {
  const { baseUrl, credential } = context
  return jsonCall(`${baseUrl}/v1beta/${resourceOf(context)}:${method}`, body, context, { 'x-goog-api-key': credential })
}

/** A model's full resource name. Tuned models have a collection of their own, which the operator writes out. */
export function resourceOf({ upstreamModel }: CallContext): string {
  return upstreamModel.includes('/') ? upstreamModel : `models/${upstreamModel}`
}
