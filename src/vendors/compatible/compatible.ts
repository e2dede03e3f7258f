import { passAsk } from '../../wire/openai/pass-ask.ts'
import { readAnswer } from '../../wire/openai/read-answer.ts'
import { openReader } from '../../wire/openai/reply-reader.ts'
import { writeAsk, type TranslationTarget } from '../../wire/openai/write-ask.ts'
import type { ThinkingSwitch } from '../../wire/openai/write-thinking.ts'
import type { Call, CallContext, Vendor } from '../vendor.ts'
import { explain } from './explain.ts'

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
  /** Thoughts of a running tool loop have to come back, or the model refuses to go on. */
  readonly takesThoughts?: boolean
  /** The most choices one call gives; absent: as many as the client asks for. */
  readonly choicesMax?: number
  /** How it is told to think, where not by an effort. */
  readonly thinkingSwitch?: ThinkingSwitch
  readonly hangup?: 'stop' | 'drain'
  readonly local?: boolean
}

export function compatible(dialect: Dialect): Vendor {
  const { root = '', outputCap = 'max_tokens', usageInStream = 'asked', storesByDefault = false } = dialect
  const { takesThoughts = false, choicesMax = Number.POSITIVE_INFINITY, thinkingSwitch = 'effort' } = dialect
  const manner = { outputCap, usageInStream, storesByDefault, takesThoughts, thinkingSwitch }

  function targetOf(context: CallContext): TranslationTarget {
    const { upstreamModel, reasoning, efforts } = context
    return { ...manner, upstreamModel, reasoning, efforts, namespaced: (label) => context.namespaced(label) }
  }

  function callWith(body: string, { baseUrl, credential, ref }: CallContext): Call {
    return {
      url: `${baseUrl}${root}/chat/completions`,
      headers: {
        ...(dialect.keyHeader === undefined
          ? { authorization: `Bearer ${credential}` }
          : { [dialect.keyHeader]: credential }),
        'content-type': 'application/json',
        'x-client-request-id': ref,
      },
      body,
    }
  }

  return {
    id: dialect.id,
    baseUrl: dialect.baseUrl,
    environment: dialect.environment ?? [],
    hangup: dialect.hangup ?? 'stop',
    local: dialect.local ?? false,
    explain,
    chat: {
      protocol: 'openai',
      choicesMax,
      pass: (ask, context) => callWith(passAsk(ask, targetOf(context)), context),
      translate: (ask, conversation, context) => callWith(writeAsk(ask, conversation, targetOf(context)), context),
      readAnswer,
      openReader,
    },
  }
}
