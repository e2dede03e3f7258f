import { GatewayError } from '../base/errors.ts'
import { decodeUtf8 } from '../base/utf8.ts'

/** Stores the error itself and not the response, because each protocol writes it in its own shape. */
export function writeFailure({ kind, message, details }: GatewayError): string {
  return JSON.stringify({ kind, message, details: { ...details, cause: undefined, inside: undefined } })
}

/** Nothing but `writeFailure` writes what is sealed without a status. */
export function readFailure(body: Uint8Array): GatewayError {
  const { kind, message, details } = JSON.parse(decodeUtf8(body)) as Pick<GatewayError, 'kind' | 'message' | 'details'>
  return new GatewayError(kind, message, details)
}
