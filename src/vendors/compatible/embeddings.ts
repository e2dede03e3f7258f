import type { EmbeddingsAnswer, EmbeddingsAsk } from '../../capabilities/embeddings.ts'
import { objectIn, objectsIn } from '../../wire/loose.ts'
import { namespacedLabels } from '../../wire/openai/pass-ask.ts'
import { vectorIn } from '../../wire/vectors.ts'
import { embedInBatches, type EmbeddingsForm } from '../embed-in-batches.ts'
import type { Adapter } from '../vendor.ts'
import { jsonCallAt, type EndpointOf } from '../json-call.ts'
import { statusInside } from './explain.ts'

/** What a vendor of the common protocol takes for embeddings, beyond texts as input and numbers as output. */
export type EmbeddingsDialect = {
  /** Takes inputs as tokens. */
  readonly tokens?: true
  /** Takes `encoding_format: base64`, which is a quarter of the bytes and far quicker to read than numbers. */
  readonly base64?: true
  /** Refuses a request with `user`. */
  readonly unlabelled?: true
}

/** Embeddings in the common protocol. The client speaks it too, so fields that we do not know pass on. */
export function embeddingsAt(reach: EndpointOf, dialect: EmbeddingsDialect): Adapter<EmbeddingsAsk, EmbeddingsAnswer> {
  const form: EmbeddingsForm = {
    takesTokens: dialect.tokens ?? false,
    call(ask, batch, context) {
      const body = {
        ...ask.extras,
        ...namespacedLabels(ask.extras, context),
        model: context.upstreamModel,
        input: batch,
        encoding_format: dialect.base64 ? 'base64' : 'float',
        dimensions: ask.dimensions,
        user: ask.user === undefined || dialect.unlabelled ? undefined : context.namespaced(ask.user),
      }
      return jsonCallAt(reach, '/embeddings', body, context)
    },
    read(answer) {
      const { data, usage } = objectIn(answer)
      const items = objectsIn(data)
      // A vendor that numbers the items may send them in any order; one that does not sends them in order.
      const isNumbered = items.every(({ index }) => typeof index === 'number')
      const ordered = isNumbered ? items.toSorted((a, b) => Number(a['index']) - Number(b['index'])) : items
      const { prompt_tokens: prompt, total_tokens: total } = objectIn(usage)
      return { vectors: ordered.map(({ embedding }) => vectorIn(embedding)), tokens: prompt ?? total }
    },
    statusOf: statusInside,
  }
  return embedInBatches(form)
}
