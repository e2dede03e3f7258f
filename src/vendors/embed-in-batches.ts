import { badRequest } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import {
  batchesOf,
  type EmbeddingInput,
  type EmbeddingsAnswer,
  type EmbeddingsAsk,
  type Vector,
} from '../capabilities/embeddings.ts'
import type { EmbeddingLimits } from '../capabilities/limits.ts'
import type { Counted } from '../capabilities/usage.ts'
import { noAnswer } from '../wire/answer-body.ts'
import { countIn, parseLoosely } from '../wire/loose.ts'
import { tokensIn } from '../wire/openai/embeddings.ts'
import { withDimensions } from '../wire/vectors.ts'
import type { Adapter, Call, CallContext } from './vendor.ts'

/** How a vendor embeds one batch, which it takes in a single call. */
export type EmbeddingsForm = {
  readonly takesTokens: boolean
  call(ask: EmbeddingsAsk, batch: readonly EmbeddingInput[], context: CallContext): Call
  /** The vectors in the order of the batch, and the number of tokens that the vendor says it read. */
  read(answer: Json | undefined, ask: EmbeddingsAsk): EmbeddedBatch
  /** For vendors that refuse with a 2xx status: the status that this body stands for. */
  readonly statusOf?: (body: Uint8Array) => number
}

type BatchResult = { readonly used: Counted; readonly vectors: readonly Vector[] }

export type EmbeddedBatch = { readonly vectors: readonly (Vector | undefined)[]; readonly tokens: Json | undefined }

/** Makes as many calls as the vendor's limits require, side by side, and joins the vectors in the inputs' order. */
export function embedInBatches(form: EmbeddingsForm): Adapter<EmbeddingsAsk, EmbeddingsAnswer> {
  return {
    start(ask, context) {
      if (!form.takesTokens && ask.inputs.some((input) => typeof input !== 'string')) {
        throw badRequest('This model takes text, not tokens.', 'input', 'invalid_type')
      }
      const batches = batchesOf(ask.inputs, ask.limits)
      const { statusOf } = form
      // Vectors as text take five times their size as numbers, so each body is read when it arrives and not kept.
      const taken: BatchResult[] = []
      return {
        kind: 'calls',
        calls: batches.map((batch) => ({ transport: 'vendor', ...form.call(ask, batch, context) })),
        ...(statusOf !== undefined && { statusOf: ({ body }) => statusOf(body) }),
        take(response, index) {
          const batch = batches[index] ?? []
          const embedded = form.read(parseLoosely(Buffer.from(response.body).toString('utf8')), ask)
          const used = countedOf(embedded, batch, ask.limits)
          taken[index] = { used, vectors: vectorsOf(embedded, batch.length, ask) }
          return used
        },
        next() {
          const used = taken.map((each) => each.used)
          const vectors = taken.flatMap((each) => each.vectors)
          // A batch gives one vector for each of its inputs, or none at all where its answer is unusable.
          if (vectors.length !== ask.inputs.length) return { kind: 'failed', error: noAnswer(), used }
          const inputTokens = used.reduce((sum, { usage }) => sum + (usage.input ?? 0), 0)
          return { kind: 'answered', answer: { vectors, inputTokens }, used }
        },
      }
    },
  }
}

function countedOf(
  { tokens }: EmbeddedBatch,
  batch: readonly EmbeddingInput[],
  { inputTokensMax }: EmbeddingLimits,
): Counted {
  if (typeof tokens === 'number') return { usage: { input: countIn(tokens) }, basis: 'vendor' }
  // What an answered text has beyond the model's length was cut off, and no vendor charges for that.
  const input = batch.reduce((sum, each) => sum + Math.min(tokensIn([each]), inputTokensMax), 0)
  return { usage: { input }, basis: 'estimated' }
}

/** One vector for each input, of the length that was asked for; none at all where the answer holds anything else. */
function vectorsOf({ vectors }: EmbeddedBatch, count: number, { dimensions }: EmbeddingsAsk): Vector[] {
  const whole = vectors.map((vector) => (vector === undefined ? undefined : withDimensions(vector, dimensions)))
  const found = whole.filter((vector) => vector !== undefined)
  return found.length === count && whole.length === count ? found : []
}
