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
  /** Of one call to the vendor, where that may be more than any other answer. */
  answerBytesMax?(ask: Ask): number
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
    const walked = await walkSteps(parts, whole, {
      start: (context) => adapter.start(ask, context),
      async finish(answer: Answer) {
        const finished = media.finish === undefined ? answer : await media.finish(ask, answer, { parts, routed })
        return write(ask, finished, { requestId: routed.requestId, createdAt: routed.receivedAt })
      },
      bytesMax: media.answerBytesMax?.(ask),
    })
    if (walked.kind === 'failed') return walked
    const { finished, legs, failed } = walked
    if ('events' in finished) return relayWhole(finished.events, { legs, failed })
    return { kind: 'answered', ...finished, legs, failed }
  }

  function write(ask: Ask, answer: Answer, name: AnswerName): { events: Uint8Array } | Written | Promise<Written> {
    if (ask.stream && codec.stream !== undefined) return { events: codec.stream.write(ask, answer, name) }
    return codec.writeAnswer(ask, answer, name)
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
