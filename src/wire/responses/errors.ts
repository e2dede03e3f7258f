import { GatewayError } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import type { WireError } from '../../capabilities/errors.ts'
import { objectIn, parseLoosely, textIn } from '../loose.ts'
import { readFailure as readCommonFailure } from '../openai/chat-answer.ts'
import { errorObject, writeError as writeCommonError } from '../openai/errors.ts'

/** What vendors and translations call a field, and what a client of this protocol does. */
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

/** Errors in the shape of the common protocol, with fields by the names that they have in this one. */
export function writeError(error: GatewayError, requestId: RequestId): WireError {
  const written = writeCommonError(error, requestId)
  // Of our own checks only those of the request as it was written say this, and by the name that the client wrote.
  const isAsWritten = error.kind === 'bad-request' && error.details.code === 'unsupported_parameter'
  const body = isAsWritten ? undefined : parseLoosely(written.body)
  if (!isObject(body)) return written
  const said = objectIn(body['error'])
  const { param } = said
  if (typeof param !== 'string' || fieldOf(param) === param) return written
  return { ...written, body: JSON.stringify({ ...body, error: { ...said, param: fieldOf(param) } }) }
}

// By these a vendor refuses a request in a response that failed, where no status says whose fault it is.
const ofRequest = /context_length_exceeded|invalid_prompt|_policy|image/

/** Why a vendor's response failed. Clients shorten a conversation that is too long, and do not send it again as it is. */
export function readFailure(error: JsonObject): GatewayError {
  const failure = readCommonFailure(error)
  const code = textIn(error['code'])
  return ofRequest.test(code) ? new GatewayError('upstream-rejected', failure.message, { code }) : failure
}

/** The error of a response that failed, in the few words that the protocol has for it. */
export function responseError({ kind, message, details }: GatewayError): JsonObject {
  if (kind === 'upstream-rejected' && details.code !== undefined) return { code: details.code, message }
  return { code: kind === 'too-many' ? 'rate_limit_exceeded' : 'server_error', message }
}

/** The same as an error of its own, with its field by the name that it has in this protocol. */
export function commonError(error: GatewayError): JsonObject {
  const said = errorObject(error)
  return { ...said, param: said.param === null ? null : fieldOf(said.param) }
}

/** An error in a stream of which nothing is known, not even that a response has begun. */
export function writeStreamError(error: GatewayError): Uint8Array {
  const said = commonError(error)
  const { code, message, param } = said
  const event = { type: 'error', sequence_number: 0, code, message, param, error: said }
  return new TextEncoder().encode(`event: error\ndata: ${JSON.stringify(event)}\n\n`)
}
