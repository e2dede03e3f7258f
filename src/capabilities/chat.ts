import type { GatewayError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Unit, Usage } from './usage.ts'

/** A way of speaking. Where client and vendor share one, the answer's bytes go through as they came. */
export type Protocol = 'openai'

/** What the rules of a chat request need to know of its model. */
export type ChatTraits = {
  readonly id: string
  readonly contextTokens: number
  readonly outputTokensMax: number
  readonly choicesMax: number
  readonly reasoning: boolean
  readonly efforts: readonly string[]
  /** Whether the model has a price for a unit: what has none is refused, never sold at another price. */
  sells(unit: Unit): boolean
}

/** A chat request, checked. The facts are what admission, billing and routing need; the rest stays in its protocol. */
export type ChatAsk = {
  readonly protocol: Protocol
  readonly model: string
  readonly stream: boolean
  /** Whether the client asked to see usage at the end of its stream; it is metered either way. */
  readonly usageShown: boolean
  readonly choices: number
  /** The most output tokens one choice may have: the client's cap, or else the model's. */
  readonly outputTokensMax: number
  /** An upper bound: a byte-level tokenizer never makes more tokens than there are bytes. */
  readonly inputTokensMax: number
  /** The body in the client's protocol, validated; opaque to everything but that protocol's codec. */
  readonly native: JsonObject
}

/** What a stream has shown so far; read at its end to settle, whichever way the end came. */
export type StreamFacts = {
  /** The vendor's own count, when it has come. */
  readonly usage: Usage | undefined
  /** Every choice gave its finish reason. */
  readonly finished: boolean
  /** The protocol's own end of stream was seen. */
  readonly ended: boolean
  /** The vendor reported a failure inside the stream. */
  readonly failure: GatewayError | undefined
  /** Events with output in them, and an estimate of the bytes of output they carried. */
  readonly outputEvents: number
  readonly outputBytes: number
}

/** Follows one stream of a vendor that speaks the client's protocol: what goes on, what waits, what is rewritten. */
export type ChatStream = {
  readonly facts: StreamFacts
  /** One whole event in; the bytes to forward now, or undefined when it is held back or dropped. */
  take(event: Uint8Array): Uint8Array | undefined
  /** What was held back for the end, to be sent once the settlement is recorded. */
  closing(): Uint8Array
}

/** A whole answer of a vendor that speaks the client's protocol. */
export type ChatAnswer = {
  readonly usage: Usage | undefined
  /** Tokens of the text that was made, for when the vendor counted none. */
  estimateOutput(): number
  /** The answer's bytes with `model` as the client knows it, and untouched where it already is. */
  readonly body: Uint8Array
}

/** One protocol as chat is spoken in it. `wire/` implements it, `http/` puts it on the request, `flow/` only calls it. */
export type ChatCodec = {
  readonly protocol: Protocol
  /** Throws bad-request with the field at fault. `lookUp` throws for a model the caller may not use. */
  readAsk(body: JsonObject, bodyBytes: number, lookUp: (model: string) => ChatTraits): ChatAsk
  /** A count of the input for when the vendor gave none: an estimate, and marked as one where it is used. */
  estimateInput(ask: ChatAsk): number
  /** Throws a GatewayError where the body is an error or no answer at all, whatever its status said. */
  readAnswer(ask: ChatAsk, body: Uint8Array): ChatAnswer
  openStream(ask: ChatAsk): ChatStream
  writeStreamError(error: GatewayError): Uint8Array
}
