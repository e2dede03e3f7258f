import type { ErrorDetails, ErrorKind } from '../../base/errors.ts'

/**
 * The operations that can give an error: those that name a model, those with a body, those about one video, the one
 * that cancels, those that take an Idempotency-Key. An unknown path is the error of no operation.
 */
export type Concern = 'model' | 'body' | 'task' | 'cancel' | 'once' | 'path'

/** When an error comes, with one of its messages. Its status, type and code are taken from the error table itself. */
export type ErrorNote = {
  readonly when: string
  readonly message: string
  /** Absent for an error that every operation can give. */
  readonly of?: Concern
} & Pick<ErrorDetails, 'param' | 'code'>

export const errorNotes: Readonly<Record<ErrorKind, readonly ErrorNote[]>> = {
  'bad-request': [
    {
      when: 'a field is missing or has an invalid value; the message names it, and so does `param` if the error has one. `code` may be more exact: `missing_required_parameter`, `invalid_type`, `unsupported_value`, `unsupported_parameter`, `unknown_parameter`, `invalid_url` and the like',
      message: "Invalid 'temperature': expected at most 2, received 3.",
      param: 'temperature',
    },
  ],
  'wrong-capability': [
    {
      when: 'the model does not have this capability',
      message: 'The model `text-embedding-3-small` does not do chat; it is for embeddings (`/v1/embeddings`).',
      of: 'body',
      param: 'model',
    },
  ],
  'upstream-rejected': [
    {
      when: "the model's vendor refused the request; where the vendor speaks this protocol, with its own message and status. A conversation that is too long has the code `context_length_exceeded`, if the error has a code",
      message: 'Your input image may contain content that is not allowed.',
      of: 'body',
    },
  ],
  unauthenticated: [
    {
      when: 'no key, or one that is malformed, unknown, disabled, revoked or expired',
      message:
        'Incorrect API key provided, or an expired or revoked one, or none. Send a valid key as "Authorization: Bearer sk-…".',
    },
  ],
  'no-funds': [
    {
      when: 'the balance or a spending cap is used up; the message gives the amount needed and the amount available',
      message:
        'Insufficient balance: this request needs up to $0.02 and $0.01 is available. It affords 600 output tokens: lower the cap on output tokens, or add credit.',
    },
  ],
  'unknown-model': [
    {
      when: 'the model does not exist, or the key may not use it; the two look the same. If the id is another spelling of a model that the key may use, or has a letter or two wrong, the message suggests that one; if the model has no price yet, it says that the operator has to set one',
      message: 'The model `gpt-0` does not exist or you do not have access to it.',
      of: 'model',
      param: 'model',
    },
  ],
  'not-found': [
    {
      when: 'the path does not exist',
      message: 'Unknown path: GET /v1/model. Did you mean GET /v1/models?',
      of: 'path',
    },
    {
      when: 'the video task does not exist, or belongs to another account; the two look the same',
      message: 'There is no such video task.',
      of: 'task',
      code: 'task_not_found',
    },
  ],
  'wrong-method': [
    {
      when: 'the path takes other methods, listed in `Allow`',
      message: 'This path takes POST, not GET.',
    },
  ],
  conflict: [
    {
      when: 'a request with the same `Idempotency-Key` is still running; wait for `Retry-After` seconds',
      message: 'The request req_0123 with this Idempotency-Key is still running.',
      of: 'once',
      code: 'idempotency_in_progress',
    },
    {
      when: 'a request with the same `Idempotency-Key` has completed, but its answer cannot be repeated: it was a stream or audio, it was long and could not be stored or is stored where this node cannot reach it, or its client left before the end',
      message: 'The request req_0123 with this Idempotency-Key has been completed.',
      of: 'once',
      code: 'already_completed',
    },
    {
      when: 'the video task can no longer be cancelled, or its vendor cannot stop tasks',
      message: 'This task cannot be cancelled: it is over.',
      of: 'cancel',
      code: 'not_cancellable',
    },
  ],
  'too-large': [
    {
      when: 'the body is larger than the gateway allows',
      message: 'The body is larger than 33554432 bytes.',
    },
  ],
  'too-many-headers': [
    {
      when: 'the request has more than a hundred headers',
      message: 'A request may have at most 100 headers.',
    },
  ],
  'wrong-type': [
    {
      when: 'the body is not `application/json` (for edits, `multipart/form-data`), or is compressed',
      message: 'The Content-Type must be application/json.',
    },
  ],
  'idempotency-mismatch': [
    {
      when: 'the `Idempotency-Key` was used with another body',
      message: 'This Idempotency-Key was used with another body.',
    },
  ],
  'too-many': [
    {
      when: "too many requests, tokens or bad keys, here or at the model's vendor; wait for `Retry-After` seconds",
      message: 'Too many requests with a bad key.',
    },
    {
      when: 'the request alone exceeds the tokens the key may use per minute; there is no `Retry-After`, and `x-should-retry` is false',
      message:
        'This request is estimated at 90000 tokens, and this key may use 60000 a minute: it is too large for this key.',
      of: 'body',
    },
  ],
  bug: [
    {
      when: "the gateway's own fault; tell its operator the `x-request-id`",
      message: 'The gateway failed. Report the request id to its operator.',
    },
  ],
  'upstream-failed': [
    {
      when: 'every vendor that was tried failed',
      message: "The model's vendor sent no answer that can be read.",
    },
  ],
  overloaded: [
    {
      when: 'no vendor is available, the gateway is stopping, its database is unreachable, or a result cannot be kept (`artifacts_full`, `artifacts_unreachable`)',
      message: 'No vendor serves gpt-4o-mini now.',
    },
  ],
  'upstream-timeout': [
    {
      when: 'the vendor took too long',
      message: "The model's vendor did not answer in time.",
    },
  ],
  // The client has left, so it never reads this error.
  'client-gone': [],
}
