import type { JsonObject } from '../base/json.ts'
import type { AskFacts } from './ask.ts'
import type { EmbeddingLimits } from './limits.ts'

/** Text, or the tokens of one vendor's own tokenizer. */
export type EmbeddingInput = string | readonly number[]

export type EmbeddingsAsk = AskFacts & {
  readonly capability: 'embeddings'
  readonly inputs: readonly EmbeddingInput[]
  /** Where the client, or the alias it asked by, chose. */
  readonly dimensions?: number
  readonly encoding: 'float' | 'base64'
  readonly limits: EmbeddingLimits
  readonly user?: string
  /** What else the client wrote, for vendors that speak its protocol. */
  readonly extras: JsonObject
}

/** Numbers, or the same as little-endian float32 in base64 where the vendor gave that and the client wants it. */
export type Vector = readonly number[] | string

export type EmbeddingsAnswer = {
  /** In the order of the inputs. */
  readonly vectors: readonly Vector[]
  /** As the client is shown them. */
  readonly inputTokens: number
}
