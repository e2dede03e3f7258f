import { badRequest, type GatewayError } from '../base/errors.ts'
import type { Placed } from '../capabilities/conversation.ts'

/** A refusal of what the vendor cannot be given, by the place where the client wrote it. */
export function notTaken({ at = 'messages' }: Placed, why: string, code = 'unsupported_value'): GatewayError {
  return badRequest(`Invalid '${at}': ${why}`, at, code)
}
