import { objectIn, objectsIn } from '../../wire/loose.ts'
import { vectorIn } from '../../wire/vectors.ts'
import { explain } from '../compatible/explain.ts'
import { embedInBatches } from '../embed-in-batches.ts'
import { bearer, jsonCall } from '../json-call.ts'
import type { Vendor } from '../vendor.ts'

/** The extra fields of a client that Voyage knows; it refuses any other. */
const known = ['input_type', 'truncation'] as const

/** Voyage: embeddings only, in its own protocol. */
export const voyage: Vendor = {
  id: 'voyage',
  baseUrl: 'https://api.voyageai.com/v1',
  environment: ['VOYAGE_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  embeddings: embedInBatches({
    takesTokens: false,
    call(ask, batch, context) {
      const body = {
        ...Object.fromEntries(known.map((field) => [field, ask.extras[field]])),
        model: context.upstreamModel,
        input: batch,
        output_dimension: ask.dimensions,
        encoding_format: 'base64',
      }
      return jsonCall(`${context.baseUrl}/embeddings`, body, context, bearer(context))
    },
    read(answer) {
      const { data, usage } = objectIn(answer)
      const items = objectsIn(data).toSorted((a, b) => Number(a['index']) - Number(b['index']))
      return { vectors: items.map(({ embedding }) => vectorIn(embedding)), tokens: objectIn(usage)['total_tokens'] }
    },
  }),
}
