import { isObject, type Json, type JsonObject } from '../base/json.ts'
import { googleSignature, markGoogle } from '../capabilities/conversation.ts'
import { objectIn } from './loose.ts'

// Google signs a call, and its models want the signature back with the call. For clients that have no better place for
// it, it stands in every protocol where Google's own endpoint of the common one puts it: in the call's `extra_content`.

/** A call's signature, marked as Google's. */
export function readSignature(call: object): string | undefined {
  const extra: unknown = 'extra_content' in call ? call.extra_content : undefined
  const google = isObject(extra) ? extra['google'] : undefined
  const signature = isObject(google) ? google['thought_signature'] : undefined
  return typeof signature === 'string' ? markGoogle(signature) : undefined
}

/** The field for a call's signature; none where the call has no signature, or another vendor's. */
export function writeSignature(signature: string | undefined): JsonObject {
  const google = googleSignature(signature)
  return google === undefined ? {} : { extra_content: { google: { thought_signature: google } } }
}

export function hasSignature(call: Json): boolean {
  return objectIn(objectIn(call)['extra_content'])['google'] !== undefined
}

/** The call for another vendor's model, for which a vendor may refuse the field. */
export function withoutSignature(written: Json): JsonObject {
  const { extra_content: extra, ...call } = objectIn(written)
  const { google: _, ...others } = objectIn(extra)
  return Object.keys(others).length > 0 ? { ...call, extra_content: others } : call
}

/** Google's models want the signatures of their calls back at every vendor; other models do not know the field. */
export function takesGoogleSignatures(upstreamModel: string): boolean {
  return /gemini/i.test(upstreamModel)
}
