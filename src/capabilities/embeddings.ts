import type { JsonObject } from '../base/json.ts'
import type { AskFacts } from './ask.ts'
import type { EmbeddingLimits } from './limits.ts'

/** A text, or tokens of the vendor's own tokenizer. */
export type EmbeddingInput = string | readonly number[]

export type EmbeddingsAsk = AskFacts & {
  readonly capability: 'embeddings'
  readonly inputs: readonly EmbeddingInput[]
  /** Set where the client, or the alias that it named, chose. */
  readonly dimensions?: number
  readonly encoding: 'float' | 'base64'
  readonly limits: EmbeddingLimits
  readonly user?: string
  /** The client's other fields, for vendors that speak its protocol. */
  readonly extras: JsonObject
}

/** Float32, as vendors compute it and base64 carries it, so that both encodings of an answer are equal bit for bit. */
export type Vector = Float32Array

export type EmbeddingsAnswer = {
  /** In the order of the inputs. */
  readonly vectors: readonly Vector[]
  /** The count that the client is shown. */
  readonly inputTokens: number
}

/** Older tokenizers add two tokens to every input, `[CLS]` and `[SEP]`. */
const tokensAround = 2

/** The most tokens an input can have: no tokenizer makes more tokens than there are bytes. */
export function tokensMaxOf(input: EmbeddingInput): number {
  return (typeof input === 'string' ? Buffer.byteLength(input) : input.length) + tokensAround
}

/**
 * Splits the inputs, in their order, into as many batches as the vendor's limits require. Tokens are counted by their
 * upper bound, because one refused batch would fail the whole request, while an additional batch costs nothing.
 */
export function batchesOf(
  inputs: readonly EmbeddingInput[],
  { batchMax, batchTokensMax = Number.POSITIVE_INFINITY, inputTokensMax }: EmbeddingLimits,
): EmbeddingInput[][] {
  const batches: EmbeddingInput[][] = []
  let batch: EmbeddingInput[] = []
  let tokens = 0
  for (const input of inputs) {
    // An input beyond the model's length is cut or refused by the vendor, and counts for no more than that length.
    const added = Math.min(tokensMaxOf(input), inputTokensMax)
    if (batch.length > 0 && (batch.length === batchMax || tokens + added > batchTokensMax)) {
      batches.push(batch)
      batch = []
      tokens = 0
    }
    batch.push(input)
    tokens += added
  }
  if (batch.length > 0) batches.push(batch)
  return batches
}
