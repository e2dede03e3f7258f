import type { Asked, AskFacts } from '../../capabilities/ask.ts'
import type { Capability } from '../../capabilities/capability.ts'
import type { ModelTraits } from '../../capabilities/limits.ts'
import type { Adapter, Vendor } from '../../vendors/vendor.ts'
import type { CallParts } from '../attempt.ts'
import type { Job } from '../job.ts'
import type { Outcome, Routed } from '../stages.ts'
import { traitsOf } from '../traits.ts'
import { walkSteps } from './steps.ts'

/** One protocol's way to ask for something that is answered as a whole. */
export type MediaCodec<Ask extends AskFacts, Answer> = {
  readAsk(asked: Asked, lookUp: (model: string) => ModelTraits): Ask
  /** A count of its tokens before the vendor has counted; 0 where it has none. */
  estimateInput(ask: Ask): number
  writeAnswer(ask: Ask, answer: Answer, name: { readonly requestId: string; readonly createdAt: number }): Written
}

export type Written = { readonly body: Uint8Array; readonly contentType: string }

export type MediaJob<Ask extends AskFacts, Answer> = {
  readonly capability: Capability
  readonly codec: MediaCodec<Ask, Answer>
  adapterOf(vendor: Vendor): Adapter<Ask, Answer> | undefined
  /** What is still to be done with what the vendor gave, before it is paid for: kept under a link, say. */
  finish?(ask: Ask, answer: Answer, routed: Routed): Promise<Answer>
}

/** Embeddings, pictures and edits: asked of the vendor step by step, answered as a whole. */
export function mediaJob<Ask extends AskFacts, Answer>(media: MediaJob<Ask, Answer>): Job {
  const { capability, codec } = media

  async function call(parts: CallParts, routed: Routed, ask: Ask): Promise<Outcome> {
    const adapter = media.adapterOf(routed.route.channel.vendor)
    if (adapter === undefined) throw new Error(`${routed.route.channel.vendor.id} does no ${capability}`)
    const walked = await walkSteps(parts, routed, (context) => adapter.start(ask, context))
    if (walked.kind === 'failed') return walked
    const answer = (await media.finish?.(ask, walked.answer, routed)) ?? walked.answer
    const { requestId, receivedAt } = routed
    const written = codec.writeAnswer(ask, answer, { requestId, createdAt: receivedAt })
    return { kind: 'answered', ...written, legs: walked.legs }
  }

  return {
    capability,
    read(asked, lookUp) {
      const ask = codec.readAsk(asked, (id) => traitsOf(lookUp(id), id))
      return {
        ask,
        estimateInput: () => codec.estimateInput(ask),
        isServedBy: (vendor) => media.adapterOf(vendor) !== undefined,
        call: (parts, routed) => call(parts, routed, ask),
        // Answers that come as a whole have no middle.
        writeStreamError: () => undefined,
      }
    },
  }
}
