import { GatewayError } from '../base/errors.ts'

/** `/v1/responses/{id}`, where clients of that protocol read stored answers. We store none, so every id is unknown. */
export function serveResponseNotFound(): never {
  const message = 'Responses are not kept here. Send the whole conversation in `input` to `POST /v1/responses`.'
  throw new GatewayError('not-found', message, { code: 'response_not_found' })
}

/** The protocol's own vendor has `input_tokens` and `compact` here. A 405 with the methods of an id would mislead. */
export function serveNothingBelow(): never {
  throw new GatewayError('not-found', 'Unknown path: nothing below `/v1/responses` takes a POST.')
}
