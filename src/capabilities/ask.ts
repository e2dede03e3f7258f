import type { JsonObject } from '../base/json.ts'
import type { Capability } from './capability.ts'
import type { ImagesUsed, VideoUsed } from './usage.ts'

/** What every request tells the line, whatever it is for; the rest is between its codec and its vendor's adapter. */
export type AskFacts = {
  readonly capability: Capability
  /** Our id of the model. */
  readonly model: string
  readonly stream: boolean
  readonly bound: Bound
  /** Tokens that a true count cannot exceed: beyond twice as many, a vendor's number is not believed. */
  readonly believable?: { readonly input: number; readonly output: number }
}

/** The most a request can use, for its hold. Tokens are held at the dearest rate they might turn out to have. */
export type Bound = {
  readonly input?: number
  readonly output?: number
  readonly webSearch?: number
  readonly character?: number
  /** Calls to the vendor that are paid for; one where nothing is said. */
  readonly request?: number
  readonly images?: ImagesUsed
  readonly video?: VideoUsed
  readonly videoToken?: number
}

/** A request as it came, of whatever form its path takes. */
export type Asked = {
  /** A JSON object, or the text fields of a form. */
  readonly body: JsonObject
  readonly files: readonly AskedFile[]
  readonly bodyBytes: number
  header(name: string): string | null
  /** A parameter of the address, on paths that take any. */
  query?(name: string): string | null
}

/** One file of a form. */
export type AskedFile = {
  /** The name of its field: `image`, `image[]`, `mask`. */
  readonly field: string
  /** What they are, their head shows, and not what the client says of them. */
  readonly bytes: Uint8Array
}
