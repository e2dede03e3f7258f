import type { EmbeddingsAnswer, EmbeddingsAsk } from '../../capabilities/embeddings.ts'
import { objectIn, objectsIn } from '../../wire/loose.ts'
import { normalised, vectorIn } from '../../wire/vectors.ts'
import { embedInBatches } from '../embed-in-batches.ts'
import type { Adapter } from '../vendor.ts'
import { callTo, resourceOf } from './call.ts'

/** Google's own form: one text or up to a hundred, which then each name the model again. */
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
      // Vectors below full length are cut off and not made unit again; callers who take the cosine for the dot rely on it.
      return dimensions === undefined || vector === undefined ? vector : normalised(vector)
    })
    return { vectors, tokens: objectIn(usageMetadata)['promptTokenCount'] }
  },
})
