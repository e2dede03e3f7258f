import { passAsk } from '../../wire/openai/pass-ask.ts'
import { readAnswer } from '../../wire/openai/read-answer.ts'
import { openReader } from '../../wire/openai/reply-reader.ts'
import { writeAsk, type TranslationTarget } from '../../wire/openai/write-ask.ts'
import type { ThinkingSwitch } from '../../wire/openai/write-thinking.ts'
import { bearer, jsonCallAt } from '../json-call.ts'
import type { Call, CallContext, Vendor } from '../vendor.ts'
import { explain } from './explain.ts'
import { embeddingsAt, type EmbeddingsDialect } from './embeddings.ts'
import { editsAt, imagesAt } from './images.ts'
import { responsesAt } from './responses.ts'
import { speechAt } from './speech.ts'

/** A vendor that speaks the common protocol is only this: its address and where it differs. */
export type Dialect = {
  readonly id: string
  readonly baseUrl: string
  readonly environment?: readonly string[]
  /** What stands between the base address and `/chat/completions`. */
  readonly root?: string
  /** The header that holds the bare key, where it is not a bearer's. */
  readonly keyHeader?: string
  readonly outputCap?: 'max_tokens' | 'max_completion_tokens' | 'either'
  readonly usageInStream?: 'asked' | 'always'
  readonly storesByDefault?: boolean
  /** `wanted`: without the thoughts of a running tool loop the model refuses to go on. `refused`: with any it does. */
  readonly thoughts?: 'wanted' | 'ignored' | 'refused'
  /** Whether it knows `user`; where not, it refuses a request that has it. */
  readonly takesUser?: boolean
  /** `nine`: it refuses ids of calls that are not of nine letters and digits. */
  readonly callIds?: 'any' | 'nine'
  /** `first`: instructions in the middle of a conversation are refused, by the vendor or by the templates of its models. */
  readonly instructions?: 'anywhere' | 'first'
  /** `model`: a message of the user right behind results is refused. */
  readonly behindResults?: 'anybody' | 'model'
  /** Knows `verbosity` and `prompt_cache_key`. */
  readonly takesHints?: boolean
  /** The most choices one call gives; absent: as many as the client asks for. */
  readonly choicesMax?: number
  /** How it is told to think, where not by an effort. */
  readonly thinkingSwitch?: ThinkingSwitch
  /** Has OpenAI's newer protocol too. */
  readonly responses?: true
  /** Embeds as the common protocol has it, with what it takes of that. */
  readonly embeddings?: EmbeddingsDialect
  /** Speaks as the common protocol has it, or in a way of its own. */
  readonly speech?: 'common' | Vendor['speech']
  /** Makes pictures as the common protocol has it, or in a way of its own; `any`: nobody knows which fields it has. */
  readonly images?: 'common' | 'any' | Vendor['images']
  /** Edits pictures as the common protocol has it. */
  readonly edits?: true
  /** Makes videos, in a way of its own. */
  readonly video?: Vendor['video']
  /** Where its refusals need other eyes than the common protocol's. */
  readonly explain?: Vendor['explain']
  readonly hangup?: 'stop' | 'drain'
  readonly local?: boolean
}

export function compatible(dialect: Dialect): Vendor {
  const { root = '', outputCap = 'max_tokens', usageInStream = 'asked', storesByDefault = false } = dialect
  const {
    thoughts = 'ignored',
    takesUser = true,
    takesHints = false,
    callIds = 'any',
    instructions = 'anywhere',
    behindResults = 'anybody',
  } = dialect
  const { choicesMax = Number.POSITIVE_INFINITY, thinkingSwitch = 'effort' } = dialect
  const manner = {
    outputCap,
    usageInStream,
    storesByDefault,
    thinkingSwitch,
    thoughts,
    takesUser,
    takesHints,
    callIds,
    instructions,
    behindResults,
  }

  function targetOf(context: CallContext): TranslationTarget {
    const { upstreamModel, reasoning, efforts, outputTokensMax, namespaced } = context
    return { ...manner, upstreamModel, reasoning, efforts, outputTokensMax, namespaced }
  }

  function reach(path: string, context: CallContext) {
    const { keyHeader } = dialect
    const key = keyHeader === undefined ? bearer(context) : { [keyHeader]: context.credential }
    return { url: `${context.baseUrl}${root}${path}`, headers: { ...key, 'x-client-request-id': context.ref } }
  }

  function callWith(body: string, context: CallContext): Call {
    return jsonCallAt(reach, '/chat/completions', body, context)
  }

  const { images: way } = dialect
  const images = way === 'common' || way === 'any' ? imagesAt(reach, way) : way
  const speech = dialect.speech === 'common' ? speechAt(reach) : dialect.speech

  return {
    id: dialect.id,
    baseUrl: dialect.baseUrl,
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
      choicesMax,
      pass: (ask, context) => callWith(passAsk(ask, targetOf(context)), context),
      translate: (ask, conversation, context) => callWith(writeAsk(ask, conversation, targetOf(context)), context),
      readAnswer,
      openReader,
      ...(dialect.responses === true && { other: responsesAt(reach) }),
    },
  }
}
