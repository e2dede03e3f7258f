import { GatewayError } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import type { WireError } from '../../capabilities/errors.ts'
import { objectIn, parseLoosely, textIn } from '../loose.ts'
import { errorObject, readFailure as readCommonFailure, writeError as writeCommonError } from '../openai/errors.ts'

/** The field names of vendors and translations, with the names that clients of this protocol use. */
const fields: readonly (readonly [RegExp, string])[] = [
  [/^messages(?:$|[.[].*)/, 'input'],
  [/^reasoning_effort$/, 'reasoning.effort'],
  [/^max(?:_completion)?_tokens$/, 'max_output_tokens'],
  [/^response_format(?:$|[.[].*)/, 'text.format'],
  [/^verbosity$/, 'text.verbosity'],
  [/^(?:top_)?logprobs$/, 'top_logprobs'],
  [/^(tools\[\d+\])\.function(.*)$/, '$1$2'],
]

function fieldOf(param: string): string {
  for (const [theirs, ours] of fields) if (theirs.test(param)) return param.replace(theirs, ours)
  return param
}

/** Errors in the shape of the common protocol, with this protocol's field names. */
export function writeError(error: GatewayError, requestId: RequestId): WireError {
  const written = writeCommonError(error, requestId)
  // Only checks of the request as written use this code, and they already name the field as the client wrote it.
  const isAsWritten = error.kind === 'bad-request' && error.details.code === 'unsupported_parameter'
  const body = isAsWritten ? undefined : parseLoosely(written.body)
  if (!isObject(body)) return written
  const said = objectIn(body['error'])
  const { param } = said
  if (typeof param !== 'string' || fieldOf(param) === param) return written
  return { ...written, body: JSON.stringify({ ...body, error: { ...said, param: fieldOf(param) } }) }
}

// Codes by which a vendor refuses a request inside a failed response, where no status tells whose fault it is.
const ofRequest = /context_length_exceeded|invalid_prompt|_policy|image/

/** Why a vendor's response failed. A refusal stays one, so that clients shorten the conversation and do not retry. */
export function readFailure(error: JsonObject): GatewayError {
  const failure = readCommonFailure(error)
  const code = textIn(error['code'])
  return ofRequest.test(code) ? new GatewayError('upstream-rejected', failure.message, { code }) : failure
}

/** The error of a failed response, in the few codes that the protocol has for it. */
export function responseError({ kind, message, details }: GatewayError): JsonObject {
  if (kind === 'upstream-rejected' && details.code !== undefined) return { code: details.code, message }
  return { code: kind === 'too-many' ? 'rate_limit_exceeded' : 'server_error', message }
}

/** The same error in the common protocol's shape, with this protocol's field name. */
export function commonError(error: GatewayError): JsonObject {
  const said = errorObject(error)
  return { ...said, param: said.param === null ? null : fieldOf(said.param) }
}

/** An error in a stream whose response has not begun, as far as is known. */
export function writeStreamError(error: GatewayError): Uint8Array {
  const said = commonError(error)
  const { code, message, param } = said
  const event = { type: 'error', sequence_number: 0, code, message, param, error: said }
  return new TextEncoder().encode(`event: error\ndata: ${JSON.stringify(event)}\n\n`)
}
