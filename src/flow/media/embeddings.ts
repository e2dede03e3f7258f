import type { EmbeddingsAnswer, EmbeddingsAsk } from '../../capabilities/embeddings.ts'
import type { Job } from '../job.ts'
import { mediaJob, type MediaCodec } from './job.ts'

/** Embeddings, as one client protocol asks for them. */
export function embeddingsJob(codec: MediaCodec<EmbeddingsAsk, EmbeddingsAnswer>): Job {
  return mediaJob({ capability: 'embeddings', codec, adapterOf: (vendor) => vendor.embeddings })
}
