import type { GatewayError } from '../../base/errors.ts'
import type { Asked, AskFacts } from '../../capabilities/ask.ts'
import type { Capability } from '../../capabilities/capability.ts'
import type { ModelTraits } from '../../capabilities/limits.ts'
import type { Adapter, Vendor } from '../../vendors/vendor.ts'
import { contextOf, type CallParts } from '../attempt.ts'
import type { Job } from '../job.ts'
import type { Outcome, Routed } from '../stages.ts'
import { traitsOf } from '../traits.ts'
import { relayEvents, relayWhole, type Streaming } from './stream.ts'
import { walkSteps } from './steps.ts'

/** One protocol's way to ask for something that is answered as a whole. */
export type MediaCodec<Ask extends AskFacts, Answer> = {
  readAsk(asked: Asked, lookUp: (model: string) => ModelTraits): Ask
  /** A count of its tokens before the vendor has counted; 0 where it has none. */
  estimateInput(ask: Ask): number
  /** A promise where it is so much that others have to have their turn meanwhile. */
  writeAnswer(ask: Ask, answer: Answer, name: AnswerName): Written | Promise<Written>
  /** Where a client may ask for a stream. */
  readonly stream?: {
    /** The whole answer as the events of a stream. */
    write(ask: Ask, answer: Answer, name: AnswerName): Uint8Array
    writeError(error: GatewayError): Uint8Array
  }
}

export type Written = { readonly body: Uint8Array; readonly contentType: string }
export type AnswerName = { readonly requestId: string; readonly createdAt: number }

export type MediaJob<Ask extends AskFacts, Answer> = {
  readonly capability: Capability
  readonly codec: MediaCodec<Ask, Answer>
  adapterOf(vendor: Vendor): Adapter<Ask, Answer> | undefined
  /** What is still to be done with what the vendor gave, before it is paid for: kept under a link, say. */
  finish?(ask: Ask, answer: Answer, way: { readonly parts: CallParts; readonly routed: Routed }): Promise<Answer>
  /** Follows the events of a vendor that streams in the client's protocol. */
  readonly streaming?: Streaming<Ask>
}

/** Embeddings, pictures and edits: asked of the vendor step by step, answered as a whole. */
export function mediaJob<Ask extends AskFacts, Answer>(media: MediaJob<Ask, Answer>): Job {
  const { capability, codec, streaming } = media

  async function call(parts: CallParts, routed: Routed, ask: Ask): Promise<Outcome> {
    const adapter = media.adapterOf(routed.route.channel.vendor)
    if (adapter === undefined) throw new Error(`${routed.route.channel.vendor.id} does no ${capability}`)
    if (ask.stream && streaming !== undefined) {
      const events = adapter.stream?.(ask, contextOf(routed, parts.tenantLabel))
      if (events !== undefined) return relayEvents(parts, routed, events, streaming.open(ask))
    }
    // However the client wants to have it, the vendor answers in one piece.
    const whole = { ...routed, ask: { ...routed.ask, stream: false } }
    const finish = media.finish?.bind(media)
    const walked = await walkSteps(
      parts,
      whole,
      (context) => adapter.start(ask, context),
      finish === undefined ? undefined : (answer) => finish(ask, answer, { parts, routed }),
    )
    if (walked.kind === 'failed') return walked
    const name = { requestId: routed.requestId, createdAt: routed.receivedAt }
    if (ask.stream && codec.stream !== undefined) {
      return relayWhole(codec.stream.write(ask, walked.answer, name), walked)
    }
    const { legs, failed } = walked
    return { kind: 'answered', ...(await codec.writeAnswer(ask, walked.answer, name)), legs, failed }
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
        writeStreamError: (error) => codec.stream?.writeError(error),
      }
    },
  }
}
