import { itemsIn, objectIn, textIn } from '../../wire/loose.ts'
import { explain } from '../compatible/explain.ts'
import { vectorIn } from '../../wire/vectors.ts'
import { embedInBatches } from '../embed-in-batches.ts'
import { bearer, jsonCall } from '../json-call.ts'
import type { Vendor } from '../vendor.ts'

const inputTypes = new Set(['search_document', 'search_query', 'classification', 'clustering'])

/** Cohere: embeddings only, in version 2 of its own protocol. */
export const cohere: Vendor = {
  id: 'cohere',
  baseUrl: 'https://api.cohere.com',
  callRoots: ['/v2'],
  environment: ['COHERE_API_KEY', 'CO_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  embeddings: embedInBatches({
    takesTokens: false,
    call(ask, batch, context) {
      const type = textIn(ask.extras['input_type'])
      const body = {
        model: context.upstreamModel,
        texts: batch,
        // Cohere requires the purpose of the vectors, which the common protocol does not have: mostly it is documents.
        input_type: inputTypes.has(type) ? type : 'search_document',
        embedding_types: ['base64'],
        output_dimension: ask.dimensions,
      }
      return jsonCall(`${context.baseUrl}/v2/embed`, body, context, bearer(context))
    },
    read(answer) {
      const { embeddings, meta } = objectIn(answer)
      const billed = objectIn(objectIn(meta)['billed_units'])
      return { vectors: itemsIn(objectIn(embeddings)['base64']).map(vectorIn), tokens: billed['input_tokens'] }
    },
  }),
}
