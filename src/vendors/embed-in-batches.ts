import { badRequest } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import {
  batchesOf,
  type EmbeddingInput,
  type EmbeddingsAnswer,
  type EmbeddingsAsk,
  type Vector,
} from '../capabilities/embeddings.ts'
import type { Counted } from '../capabilities/usage.ts'
import { noAnswer } from '../wire/answer-body.ts'
import { countIn, parseLoosely } from '../wire/loose.ts'
import { tokensIn } from '../wire/openai/embeddings.ts'
import { fitted } from '../wire/vectors.ts'
import type { Adapter, Call, CallContext } from './vendor.ts'

/** How one vendor embeds a batch that it takes at once. */
export type EmbeddingsForm = {
  readonly takesTokens: boolean
  call(ask: EmbeddingsAsk, batch: readonly EmbeddingInput[], context: CallContext): Call
  /** The vectors in the order of the batch, and the tokens it says it read. */
  read(answer: Json | undefined, ask: EmbeddingsAsk): Embedded
  /** Where it refuses under a good status: the one that this answer has elsewhere. */
  readonly statusOf?: (body: Uint8Array) => number
}

type Taken = { readonly used: Counted; readonly vectors: readonly Vector[] }

export type Embedded = { readonly vectors: readonly (Vector | undefined)[]; readonly tokens: Json | undefined }

/** As many calls as the vendor's limits ask for, side by side, and their vectors in the order of the inputs. */
export function embedInBatches(form: EmbeddingsForm): Adapter<EmbeddingsAsk, EmbeddingsAnswer> {
  return {
    start(ask, context) {
      if (!form.takesTokens && ask.inputs.some((input) => typeof input !== 'string')) {
        throw badRequest('This model takes text, not tokens.', 'input', 'invalid_type')
      }
      const batches = batchesOf(ask.inputs, ask.limits)
      const { statusOf } = form
      // Vectors as text are five times what they are as numbers: each body is read when it comes, and not kept.
      const taken: Taken[] = []
      return {
        kind: 'calls',
        calls: batches.map((batch) => ({ transport: 'vendor', ...form.call(ask, batch, context) })),
        ...(statusOf !== undefined && { statusOf: ({ body }) => statusOf(body) }),
        take(response, index) {
          const batch = batches[index] ?? []
          const embedded = form.read(parseLoosely(Buffer.from(response.body).toString('utf8')), ask)
          const used = countedOf(embedded, batch)
          taken[index] = { used, vectors: vectorsOf(embedded, batch.length, ask) }
          return used
        },
        next() {
          const used = taken.map((each) => each.used)
          const vectors = taken.flatMap((each) => each.vectors)
          // Every batch was answered with one vector for each of its inputs, or with nothing that can be read.
          if (vectors.length !== ask.inputs.length) return { kind: 'failed', error: noAnswer(), used }
          const inputTokens = used.reduce((sum, { usage }) => sum + (usage.input ?? 0), 0)
          return { kind: 'answered', answer: { vectors, inputTokens }, used }
        },
      }
    },
  }
}

function countedOf({ tokens }: Embedded, batch: readonly EmbeddingInput[]): Counted {
  if (typeof tokens === 'number') return { usage: { input: countIn(tokens) }, basis: 'vendor' }
  return { usage: { input: tokensIn(batch) }, basis: 'estimated' }
}

/** One vector for each input, of the length that was asked for; anything else is no answer, and none is left of it. */
function vectorsOf({ vectors }: Embedded, count: number, { dimensions }: EmbeddingsAsk): Vector[] {
  const whole = vectors.map((vector) => (vector === undefined ? undefined : fitted(vector, dimensions)))
  const found = whole.filter((vector) => vector !== undefined)
  return found.length === count && whole.length === count ? found : []
}
