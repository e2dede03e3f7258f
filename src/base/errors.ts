import { isOutOfFiles } from './system-errors.ts'

/** Every way a request can fail. Each protocol renders each: see the tables of `ErrorKind` in `wire/` and `mcp/`. */
export type ErrorKind =
  | 'bad-request'
  | 'unauthenticated'
  | 'no-funds'
  | 'unknown-model' // also a model the key may not use: the two must look the same
  | 'wrong-capability'
  | 'not-found'
  | 'wrong-method'
  | 'wrong-type'
  | 'conflict'
  | 'idempotency-mismatch'
  | 'too-many'
  | 'too-large'
  | 'too-many-headers'
  | 'upstream-rejected' // the vendor's own 4xx about the request: its status and message pass
  | 'upstream-failed'
  | 'upstream-timeout'
  | 'overloaded'
  | 'client-gone'
  | 'bug'

/** A vendor's refusal as it came, for clients that speak the vendor's protocol; our secrets are already scrubbed. */
export type Refusal = {
  readonly protocol: string
  readonly status: number
  readonly body: string
}

/** An error that a vendor sent under a 2xx status, and the status that the same error usually has. */
export type SaidInside = { readonly status: number; readonly body: string }

export type ErrorDetails = {
  /** The finer code inside a kind, as the common protocol spells it: `invalid_value`, `unsupported_value`, … */
  readonly code?: string
  /** The field at fault, as a path the client can find: `messages[0].content`. */
  readonly param?: string
  readonly retryAfterSeconds?: number
  /** The methods a path does take, for 405. */
  readonly allow?: string
  /** False where a retry cannot help or would be charged again. */
  readonly shouldRetry?: false
  /** Nothing was done for the request, and it will be refused again until something else changes. */
  readonly hopeless?: true
  readonly refusal?: Refusal
  /** Not judged yet: from this the vendor's adapter decides whose fault it is and whether a credential must rest. */
  readonly inside?: SaidInside
  readonly cause?: unknown
}

export class GatewayError extends Error {
  readonly kind: ErrorKind
  readonly details: ErrorDetails

  constructor(kind: ErrorKind, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'GatewayError'
    this.kind = kind
    this.details = details
  }
}

/** Turns anything thrown into our one type. An unforeseen error is a bug: the client learns only its request id. */
export function asGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  if (isOutOfFiles(thrown)) {
    const message = 'The gateway has reached its limit of open files and connections.'
    return new GatewayError('overloaded', message, { retryAfterSeconds: 1, cause: thrown })
  }
  return new GatewayError('bug', 'The gateway failed. Report the request id to its operator.', { cause: thrown })
}

/** The error, whatever was thrown. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** What went wrong, in words, whatever was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** A vendor sent an error in place of an answer. The message is used where no adapter judges the error. */
export function refusedInside(
  inside: SaidInside,
  message = "The model's vendor did not answer as it should.",
): GatewayError {
  return new GatewayError('upstream-failed', message, { inside })
}

/** Forbids retries after a vendor has begun and may charge: official clients retry twice, each time at a new charge. */
export function forbidRetry(error: GatewayError): GatewayError {
  return new GatewayError(error.kind, error.message, { ...error.details, shouldRetry: false })
}

// Messages and params quote what the client wrote, in which a single name may be megabytes long.
const messageCharactersMax = 4_000
const paramCharactersMax = 500

export function badRequest(message: string, param?: string, code = 'invalid_value'): GatewayError {
  const field = param === undefined ? {} : { param: shortened(param, paramCharactersMax) }
  return new GatewayError('bad-request', shortMessage(message), { code, ...field })
}

export function shortMessage(message: string): string {
  return shortened(message, messageCharactersMax)
}

const excerptCharactersMax = 100

/** Shortens a client's text for quoting it in a message: enough to find it in the request. */
export function excerpt(text: string): string {
  return shortened(text, excerptCharactersMax)
}

function shortened(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax - 1)}…`
}

/** Closes a switch over a union: a new member does not compile until it is handled. */
export function unreachable(value: never): never {
  throw new GatewayError('bug', `unreachable: ${String(value)}`)
}
