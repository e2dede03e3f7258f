import { isOutOfFiles } from './system-errors.ts'

/** Every way a request can fail. Each protocol renders each kind: see the tables of `Kind` in `wire/` and `mcp/`. */
export type Kind =
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

/** A vendor's refusal as it came, for clients that speak the vendor's protocol; scrubbed of our secrets already. */
export type Refusal = {
  readonly protocol: string
  readonly status: number
  readonly body: string
}

/** What a vendor said under a good status, and the status that it has elsewhere. */
export type SaidInside = { readonly status: number; readonly body: string }

export type ErrorDetails = {
  /** The finer code inside a kind, as the common protocol spells it: `invalid_value`, `unsupported_value`, … */
  readonly code?: string
  /** The field at fault, as a path the client can find: `messages[0].content`. */
  readonly param?: string
  readonly retryAfterSeconds?: number
  /** The methods a path does take, for 405. */
  readonly allow?: string
  /** False where trying again cannot help or would be charged again. */
  readonly shouldRetry?: false
  /** Nothing was done for it, and the same request will be refused again until something else changes. */
  readonly hopeless?: true
  readonly refusal?: Refusal
  /** Not judged yet: whose fault it is, and whether a key has to rest, its vendor's adapter tells by this. */
  readonly inside?: SaidInside
  readonly cause?: unknown
}

export class GatewayError extends Error {
  readonly kind: Kind
  readonly details: ErrorDetails

  constructor(kind: Kind, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'GatewayError'
    this.kind = kind
    this.details = details
  }
}

/** Whatever was thrown, as our one type. An error nobody foresaw is a bug: the client learns its request id and no more. */
export function asGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  if (isOutOfFiles(thrown)) {
    const message = 'The gateway has reached its limit of open files and connections.'
    return new GatewayError('overloaded', message, { retryAfterSeconds: 1, cause: thrown })
  }
  return new GatewayError('bug', 'The gateway failed. Report the request id to its operator.', { cause: thrown })
}

/** A vendor said no where an answer should have been. The message is for where nobody judges it. */
export function refusedInside(
  inside: SaidInside,
  message = "The model's vendor did not answer as it should.",
): GatewayError {
  return new GatewayError('upstream-failed', message, { inside })
}

/** A vendor had begun, and may charge: whoever tries again pays it again, and official clients would, twice. */
export function final(error: GatewayError): GatewayError {
  return new GatewayError(error.kind, error.message, { ...error.details, shouldRetry: false })
}

// Both quote what the client wrote, where a single name may have megabytes.
const messageCharactersMax = 4_000
const paramCharactersMax = 500

export function badRequest(message: string, param?: string, code = 'invalid_value'): GatewayError {
  const field = param === undefined ? {} : { param: shortened(param, paramCharactersMax) }
  return new GatewayError('bad-request', shortened(message, messageCharactersMax), { code, ...field })
}

const excerptCharactersMax = 100

/** What a client wrote, inside of a sentence about it: enough to find it by. */
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
