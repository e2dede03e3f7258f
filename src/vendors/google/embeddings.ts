import type { EmbeddingsAnswer, EmbeddingsAsk } from '../../capabilities/embeddings.ts'
import { objectIn, objectsIn } from '../../wire/loose.ts'
import { normalised, vectorIn } from '../../wire/vectors.ts'
import { embedInBatches } from '../embed-in-batches.ts'
import type { Adapter } from '../vendor.ts'
import { callTo, resourceOf } from './call.ts'

/** Google's own form: one text, or a batch of up to a hundred, each of which names the model again. */
export const embeddings: Adapter<EmbeddingsAsk, EmbeddingsAnswer> = embedInBatches({
  takesTokens: false,
  call(ask, batch, context) {
    const requests = batch.map((input) => ({
      model: resourceOf(context),
      content: { parts: [{ text: input }] },
      outputDimensionality: ask.dimensions,
    }))
    const [first] = requests
    return requests.length === 1 && first !== undefined
      ? callTo('embedContent', first, context)
      : callTo('batchEmbedContents', { requests }, context)
  },
  read(answer, { dimensions }) {
    const { embedding, embeddings: several, usageMetadata } = objectIn(answer)
    const items = embedding === undefined ? objectsIn(several) : [objectIn(embedding)]
    const vectors = items.map(({ values }) => {
      const vector = vectorIn(values)
      // Google cuts shorter vectors off without normalising them again, but clients that take the dot product for the
      // cosine rely on unit vectors.
      return dimensions === undefined || vector === undefined ? vector : normalised(vector)
    })
    return { vectors, tokens: objectIn(usageMetadata)['promptTokenCount'] }
  },
})
