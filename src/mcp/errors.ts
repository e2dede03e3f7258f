import type { GatewayError, ErrorKind } from '../base/errors.ts'
import type { WriteError } from '../capabilities/errors.ts'
import { errorObject, writeError } from '../wire/openai/errors.ts'

/** Errors before the caller is known have the common shape. Only refused hosts and origins have other statuses. */
const statuses: Readonly<Record<string, number>> = { invalid_host: 403, invalid_origin: 403 }

export const writeDoorError: WriteError = (error, requestId) => {
  const written = writeError(error, requestId)
  const status = statuses[error.details.code ?? ''] ?? written.status
  const challenge = status === 401 ? { 'www-authenticate': 'Bearer realm="turnpike", error="invalid_token"' } : {}
  return { ...written, status, headers: { ...written.headers, ...challenge } }
}

const invalidRequest = -32_600
export const invalidParams = -32_602
const internalError = -32_603
/** Server-defined codes begin here. */
const serverError = -32_000

/** The JSON-RPC codes. A new kind does not compile until it has a row here. */
const codes = {
  'bad-request': invalidRequest,
  unauthenticated: serverError,
  'no-funds': serverError,
  'unknown-model': invalidParams,
  'wrong-capability': invalidParams,
  'not-found': invalidParams,
  'wrong-method': invalidRequest,
  'wrong-type': invalidRequest,
  conflict: serverError,
  'idempotency-mismatch': serverError,
  'too-many': serverError,
  'too-large': invalidRequest,
  'too-many-headers': invalidRequest,
  'upstream-rejected': serverError,
  'upstream-failed': serverError,
  'upstream-timeout': serverError,
  overloaded: serverError,
  'client-gone': serverError,
  bug: internalError,
} as const satisfies Record<ErrorKind, number>

/** Codes of a body that is not JSON at all. */
const parseErrors: ReadonlySet<string> = new Set(['invalid_json', 'invalid_utf8'])
const parseError = -32_700

export function rpcCodeOf({ kind, details }: GatewayError): number {
  if (parseErrors.has(details.code ?? '')) return parseError
  return details.code === 'invalid_params' ? invalidParams : codes[kind]
}

/** Errors once the caller is known: JSON-RPC, with the same status and wording as on every other path. */
export function writeRpcError(id: string | number | null): WriteError {
  return (error, requestId) => {
    const written = writeError(error, requestId)
    const { message, ...about } = errorObject(error)
    const body = { jsonrpc: '2.0', id, error: { code: rpcCodeOf(error), message, data: about } }
    return { ...written, body: JSON.stringify(body) }
  }
}

const resourceMissing = /"code":-32602(?=,"message":"(?:[^"\\]|\\.)*","data":\{"uri":)/

/**
 * Until 2025-11-25 a missing resource had a code of its own, which clients of that time look for. The library writes
 * the newer code for all of them.
 */
export async function inOlderCodes(response: Response): Promise<Response> {
  return new Response((await response.text()).replace(resourceMissing, '"code":-32002'), response)
}
