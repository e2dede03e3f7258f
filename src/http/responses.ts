import { GatewayError } from '../base/errors.ts'

/** `/v1/responses/{id}`, which clients of that protocol read kept answers from. None is kept: no id leads to one. */
export function serveNoResponse(): never {
  const message = 'Responses are not kept here. Send the whole conversation in `input` to `POST /v1/responses`.'
  throw new GatewayError('not-found', message, { code: 'response_not_found' })
}

/** `input_tokens` and `compact` of the protocol's own vendor: to say which methods an id takes would mislead their callers. */
export function serveNothingBelow(): never {
  throw new GatewayError('not-found', 'Unknown path: nothing below `/v1/responses` takes a POST.')
}
