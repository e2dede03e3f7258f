import { jsonCall } from '../json-call.ts'
import type { Call, CallContext } from '../vendor.ts'

/** One method of one model, with the key in the header: the vendor takes it in the address too, from where it gets into logs. */
export function callTo(method: string, body: unknown, context: CallContext): Call {
  const { baseUrl, upstreamModel, credential } = context
  // Tuned models have a collection of their own, which an operator writes out.
  const model = upstreamModel.includes('/') ? upstreamModel : `models/${upstreamModel}`
  return jsonCall(`${baseUrl}/v1beta/${model}:${method}`, body, context, { 'x-goog-api-key': credential })
}
