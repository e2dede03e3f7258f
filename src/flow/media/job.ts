import type { GatewayError } from '../../base/errors.ts'
import type { AttemptId } from '../../base/ids.ts'
import type { ReceivedRequest, AskFacts } from '../../capabilities/ask.ts'
import type { Capability } from '../../capabilities/capability.ts'
import type { ModelTraits } from '../../capabilities/limits.ts'
import { LinkTime } from '../../upstream/link-time.ts'
import type { Adapter, Vendor } from '../../vendors/vendor.ts'
import { contextOf, type CallParts } from '../attempt.ts'
import type { Job } from '../job.ts'
import type { Following } from '../open-relay.ts'
import { relayWhole } from '../relay-whole.ts'
import type { Outcome, Routed } from '../stages.ts'
import { relayEvents } from './stream.ts'
import { walkSteps } from './steps.ts'

/** How one protocol asks for something that vendors answer as a whole, and how the answer is written. */
export type MediaCodec<Ask extends AskFacts, Answer> = {
  readAsk(asked: ReceivedRequest, lookUp: (model: string) => ModelTraits): Ask
  /** An estimate of the input tokens before the vendor has counted them; 0 where the ask has none. */
  estimateInput(ask: Ask): number
  /** Gives a promise where the answer is so large that other requests must get their turn while it is written. */
  writeAnswer(ask: Ask, answer: Answer, name: AnswerName): Written | Promise<Written>
  /** Present where a client may ask for a stream. */
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
  /** What is still to be done with the vendor's answer before it is settled, like keeping its images under a link. */
  finish?(ask: Ask, answer: Answer, way: { readonly parts: CallParts; readonly routed: Routed }): Promise<Answer>
  /** The limit for the answer to one call, where it may be larger than that of other answers. */
  answerBytesMax?(ask: Ask): number
  /** Follows the events of a vendor that streams in the client's protocol. */
  follow?(ask: Ask, attemptId: AttemptId): Following
}

/** Embeddings, images and edits: the vendor is asked step by step, and each answer is whole. */
export function mediaJob<Ask extends AskFacts, Answer>(media: MediaJob<Ask, Answer>): Job {
  const { capability, codec } = media

  async function call(parts: CallParts, routed: Routed, ask: Ask): Promise<Outcome> {
    const adapter = media.adapterOf(routed.route.channel.vendor)
    if (adapter === undefined) throw new Error(`${routed.route.channel.vendor.id} does no ${capability}`)
    if (ask.stream && media.follow !== undefined) {
      const events = adapter.stream?.(ask, contextOf(routed, parts.tenantLabel))
      if (events !== undefined) return relayEvents(parts, routed, events, media.follow(ask, routed.attemptId))
    }
    // The vendor answers in one piece here, also where the client wants a stream.
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
      const ask = codec.readAsk(asked, lookUp)
      const linkTime = new LinkTime()
      return {
        ask,
        estimateInput: () => codec.estimateInput(ask),
        isServedBy: (vendor) => media.adapterOf(vendor) !== undefined,
        call(parts, routed) {
          const fetchLink = linkTime.bound(parts.fetchLink, () => routed.elapsedMs())
          return call({ ...parts, fetchLink }, routed, ask)
        },
        // Where there are no streams, answers come whole, and no error can come in the middle of one.
        writeStreamError: (error) => codec.stream?.writeError(error),
      }
    },
  }
}
