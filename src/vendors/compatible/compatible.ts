import { answerEvents } from '../../wire/openai/answer-events.ts'
import { refuseUncountedSearch } from '../../wire/openai/chat-ask.ts'
import { refuseKeptFiles } from '../../wire/openai/kept-files.ts'
import { passAsk } from '../../wire/openai/pass-ask.ts'
import { readAnswer } from '../../wire/openai/read-answer.ts'
import { readStreamed } from '../../wire/openai/read-streamed.ts'
import { openReader } from '../../wire/openai/reply-reader.ts'
import { writeAsk, type TranslationTarget } from '../../wire/openai/write-ask.ts'
import { bearer, jsonCallAt } from '../json-call.ts'
import type { Call, CallContext, Vendor } from '../vendor.ts'
import { explain } from './explain.ts'
import { embeddingsAt, type EmbeddingsDialect } from './embeddings.ts'
import { editsAt, imagesAt } from './images.ts'
import { responsesAt } from './responses.ts'
import { speechAt } from './speech.ts'

/** How a vendor speaks the common protocol, whichever of its models is asked. */
type Manner = Omit<TranslationTarget, 'upstreamModel' | 'reasoning' | 'efforts' | 'outputTokensMax' | 'namespaced'>

const usualManner: Manner = {
  outputCap: 'max_tokens',
  usageInStream: 'asked',
  storesByDefault: false,
  metadata: 'any',
  thinkingSwitch: 'effort',
  pastReasoning: 'ignored',
  takesDeveloper: false,
  leftOut: [],
  messageLeftOut: [],
  seedField: 'seed',
  takesHints: false,
  takesSchema: true,
  callIds: 'any',
  instructions: 'anywhere',
  afterToolResults: 'anybody',
}

/** A vendor that speaks the common protocol is only data: its address, and where it differs from the usual manner. */
export type Dialect = Partial<Manner> & {
  readonly id: string
  readonly baseUrl: string
  readonly environment?: readonly string[]
  /** The path between the base address and `/chat/completions`. */
  readonly root?: string
  readonly callRoots?: Vendor['callRoots']
  /** The header that holds the bare key, for a vendor that takes no bearer token. */
  readonly keyHeader?: string
  /** The models that refuse a request for a whole answer. Their stream is read to its end, and given as a whole. */
  readonly streamsOnly?: RegExp
  /** Those that refuse it while they think, which they do unless they are told not to. */
  readonly streamsThinking?: RegExp
  /** The models that refuse a request with `stop`, as those of the reasoning class do. */
  readonly unstoppable?: RegExp
  /** The most choices that one call gives; absent: as many as the client asks for. */
  readonly choicesMax?: number
  /** Serves OpenAI's newer protocol, `/responses`, too. */
  readonly responses?: true
  /** Serves embeddings in the common protocol, with the parts of it that the vendor takes. */
  readonly embeddings?: EmbeddingsDialect
  /** Serves speech in the common protocol, or by an adapter of its own. */
  readonly speech?: 'common' | Vendor['speech']
  /** Makes images in the common protocol, or by an adapter of its own; `any`: which fields it takes is unknown. */
  readonly images?: 'common' | 'any' | Vendor['images']
  /** Fields of the common protocol for which the vendor refuses to make an image. */
  readonly imagesLeftOut?: readonly string[]
  /** Edits images in the common protocol. */
  readonly edits?: true
  /** Makes videos, by an adapter of its own. */
  readonly video?: Vendor['video']
  /** For a vendor whose refusals the common protocol's reader would misjudge. */
  readonly explain?: Vendor['explain']
  readonly hangup?: Vendor['hangup']
  readonly local?: boolean
}

export function compatible(dialect: Dialect): Vendor {
  const { root = '', keyHeader } = dialect
  const manner: Manner = { ...usualManner, ...dialect }

  function targetOf(context: CallContext): TranslationTarget {
    const { upstreamModel, reasoning, efforts, outputTokensMax, namespaced } = context
    const leftOut = dialect.unstoppable?.test(upstreamModel) ? [...manner.leftOut, 'stop'] : manner.leftOut
    return { ...manner, leftOut, upstreamModel, reasoning, efforts, outputTokensMax, namespaced }
  }

  function reach(path: string, context: CallContext) {
    const key = keyHeader === undefined ? bearer(context) : { [keyHeader]: context.credential }
    return { url: `${context.baseUrl}${root}${path}`, headers: { ...key, 'x-client-request-id': context.ref } }
  }

  function onlyStreams({ upstreamModel }: CallContext, mayThink = true): boolean {
    const { streamsOnly, streamsThinking } = dialect
    return streamsOnly?.test(upstreamModel) === true || (mayThink && streamsThinking?.test(upstreamModel) === true)
  }

  function callWith(body: string, context: CallContext): Call {
    return jsonCallAt(reach, '/chat/completions', body, context)
  }

  const { images: way } = dialect
  const images = way === 'common' || way === 'any' ? imagesAt(reach, way, dialect.imagesLeftOut) : way
  const speech = dialect.speech === 'common' ? speechAt(reach) : dialect.speech

  return {
    id: dialect.id,
    baseUrl: dialect.baseUrl,
    ...(dialect.callRoots !== undefined && { callRoots: dialect.callRoots }),
    environment: dialect.environment ?? [],
    hangup: dialect.hangup ?? 'stop',
    local: dialect.local ?? false,
    explain: dialect.explain ?? explain,
    ...(dialect.embeddings !== undefined && { embeddings: embeddingsAt(reach, dialect.embeddings) }),
    ...(speech !== undefined && { speech }),
    ...(images !== undefined && { images }),
    ...(dialect.edits === true && { edits: editsAt(reach) }),
    ...(dialect.video !== undefined && { video: dialect.video }),
    chat: {
      protocol: 'openai',
      choicesMax: dialect.choicesMax ?? Number.POSITIVE_INFINITY,
      pass(ask, context) {
        refuseKeptFiles(ask.native)
        refuseUncountedSearch(ask.native)
        if (!ask.stream && onlyStreams(context, ask.native['enable_thinking'] !== false)) return undefined
        return callWith(passAsk(ask, targetOf(context)), context)
      },
      translate(ask, conversation, context) {
        const stream = ask.stream || onlyStreams(context)
        return callWith(writeAsk({ ...ask, stream }, conversation, targetOf(context)), context)
      },
      readAnswer: (dialect.streamsOnly ?? dialect.streamsThinking) === undefined ? readAnswer : readStreamed,
      openReader,
      answerEvents,
      ...(dialect.responses === true && { secondProtocol: responsesAt(reach) }),
    },
  }
}
