import { badRequest, type GatewayError } from '../base/errors.ts'
import type { Placed } from '../capabilities/conversation.ts'

/** The error for a block that cannot be sent to the vendor, named by its place in the client's body. */
export function unsupportedBlock({ at = 'messages' }: Placed, why: string, code = 'unsupported_value'): GatewayError {
  return badRequest(`Invalid '${at}': ${why}`, at, code)
}
