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

/** As every vendor computes it and base64 carries it: both encodings of an answer are the same to the last bit. */
export type Vector = Float32Array

export type EmbeddingsAnswer = {
  /** In the order of the inputs. */
  readonly vectors: readonly Vector[]
  /** As the client is shown them. */
  readonly inputTokens: number
}

/** What tokenizers put around every input: the `[CLS]` and `[SEP]` of the older ones. */
const tokensAround = 2

/** The most tokens an input can be: no tokenizer makes more of them than there are bytes. */
export function tokensMaxOf(input: EmbeddingInput): number {
  return (typeof input === 'string' ? Buffer.byteLength(input) : input.length) + tokensAround
}

/**
 * The inputs in as many batches as the vendor's limits ask for, in their order. Tokens are reckoned by their upper bound:
 * one refused batch would fail the whole request, while a batch more costs nothing.
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
