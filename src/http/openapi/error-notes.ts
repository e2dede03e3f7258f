import type { ErrorDetails, Kind } from '../../base/errors.ts'

/** When an error comes, and one as the gateway says it. Its status, type and code are those of the error table itself. */
export type ErrorNote = { readonly when: string; readonly message: string } & Pick<ErrorDetails, 'param' | 'code'>

export const errorNotes: Readonly<Record<Kind, readonly ErrorNote[]>> = {
  'bad-request': [
    {
      when: 'a field is missing or has a value it cannot have; `param` names it',
      message: "Invalid 'temperature': too big: expected number to be <=2.",
      param: 'temperature',
    },
  ],
  'wrong-capability': [
    {
      when: 'the model is there for something else',
      message: 'The model `text-embedding-3-small` does not do chat; it is for embeddings (`/v1/embeddings`).',
      param: 'model',
    },
  ],
  'upstream-rejected': [
    {
      when: "the model's vendor refuses the request; where it speaks this protocol, in its own words and with its status",
      message: 'Your input image may contain content that is not allowed.',
    },
  ],
  unauthenticated: [
    {
      when: 'no key, or one that is malformed, unknown, disabled, revoked or expired',
      message: 'Incorrect API key provided, or none. Send a valid key as "Authorization: Bearer sk-…".',
    },
  ],
  'no-funds': [
    {
      when: 'the balance or the spending cap is used up; the message says what was needed and what there is',
      message:
        'Insufficient balance: this request needs up to $0.02 and $0.01 is available. It affords 600 output tokens: lower the cap on output tokens, or add credit.',
    },
  ],
  'unknown-model': [
    {
      when: 'there is no such model, or the key may not use it: the two look the same. Another spelling of one that it may use is told what may have been meant, and one without a price that the operator has to set it',
      message: 'The model `gpt-0` does not exist or you do not have access to it.',
      param: 'model',
    },
  ],
  'not-found': [
    { when: 'there is no such path', message: 'Unknown path: GET /v1/model' },
    {
      when: "there is no such video task, or it is another account's: the two look the same",
      message: 'There is no such video task.',
      code: 'task_not_found',
    },
  ],
  'wrong-method': [
    {
      when: 'the path takes another method, named in `Allow`',
      message: 'This path takes POST, not GET.',
    },
  ],
  conflict: [
    {
      when: 'a request with the same `Idempotency-Key` is still running; wait for `Retry-After` seconds',
      message: 'The request req_0123 with this Idempotency-Key is still running.',
      code: 'idempotency_in_progress',
    },
    {
      when: 'a request with the same `Idempotency-Key` was answered, by what cannot be repeated: a stream, a sound, or a long answer that is not kept where this one came to; or nobody waited for its end',
      message: 'The request req_0123 with this Idempotency-Key has been completed.',
      code: 'already_completed',
    },
    {
      when: 'a video task cannot be cancelled any more, or its vendor cannot stop one',
      message: 'This task cannot be cancelled: it is over.',
      code: 'not_cancellable',
    },
  ],
  'too-large': [
    {
      when: 'the body has more bytes than the gateway takes',
      message: 'The body is larger than 33554432 bytes.',
    },
  ],
  'too-many-headers': [
    {
      when: 'the request has more than a hundred headers',
      message: 'A request may have 100 headers.',
    },
  ],
  'wrong-type': [
    {
      when: 'the body is not `application/json`, or is compressed',
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
      when: 'one request alone has more tokens than the key may use in a minute; there is no `Retry-After`, and `x-should-retry` is false',
      message:
        'This request is estimated at 90000 tokens, and this key may use 60000 a minute: it is too large for this key.',
    },
  ],
  bug: [
    {
      when: "the gateway's own fault; tell its operator the `x-request-id`",
      message: 'The gateway made a mistake. Tell its operator the request id.',
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
      when: 'no vendor is free, the gateway is stopping, or its database is out of reach',
      message: 'No vendor serves gpt-4o-mini now.',
    },
  ],
  'upstream-timeout': [
    {
      when: 'the vendor took too long',
      message: "The model's vendor did not answer in time.",
    },
  ],
  // Nobody is there to read it.
  'client-gone': [],
}
