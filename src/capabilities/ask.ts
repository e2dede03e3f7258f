import type { JsonObject } from '../base/json.ts'
import type { Capability } from './capability.ts'
import type { ImagesUsed, VideoUsed } from './usage.ts'

/** What the flow needs to know of every request; the rest concerns only its codec and its vendor's adapter. */
export type AskFacts = {
  readonly capability: Capability
  /** Our id of the model, not the vendor's. */
  readonly model: string
  readonly stream: boolean
  readonly bound: Bound
  /** Tokens that a true count cannot exceed: a vendor's number of more than twice as many is not believed. */
  readonly believable?: { readonly input: number; readonly output: number }
}

/** The most a request can use, for its hold. Tokens are held at the highest rate that may turn out to apply to them. */
export type Bound = {
  readonly input?: number
  readonly output?: number
  readonly webSearch?: number
  readonly character?: number
  /** Calls to the vendor that are charged; one if absent. */
  readonly request?: number
  readonly images?: ImagesUsed
  readonly video?: VideoUsed
  readonly videoToken?: number
}

/** A body read whole: a JSON object, or a form with its files. */
export type ReadBody = {
  readonly body: JsonObject
  readonly files: readonly AskedFile[]
  /** Tells two bodies apart, and is the same where a client that retries orders or splits its body differently. */
  readonly canonicalBytes: Uint8Array
  readonly bytes: number
}

/** A request as received, in the form that its path takes. */
export type ReceivedRequest = {
  /** A JSON object, or the text fields of a form. */
  readonly body: JsonObject
  readonly files: readonly AskedFile[]
  readonly bodyBytes: number
  header(name: string): string | null
  /** A query parameter, on paths that take any. */
  query?(name: string): string | null
}

export type AskedFile = {
  /** The name of its field: `image`, `image[]`, `image[0]`, `mask`. */
  readonly field: string
  /** The file's type is read from its head; the type that the client states is ignored. */
  readonly bytes: Uint8Array
}
