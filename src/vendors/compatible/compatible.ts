import { writeAsk } from '../../wire/openai/chat-ask.ts'
import type { Vendor } from '../vendor.ts'
import { explain } from './explain.ts'

/** A vendor that speaks the common protocol is only this: its address and where it differs. */
export type Dialect = {
  readonly id: string
  readonly baseUrl: string
  readonly environment?: readonly string[]
  /** What stands between the base address and `/chat/completions`. */
  readonly root?: string
  readonly outputCap?: 'max_tokens' | 'max_completion_tokens' | 'either'
  readonly usageInStream?: 'asked' | 'always'
  readonly storesByDefault?: boolean
  readonly hangup?: 'stop' | 'drain'
  readonly local?: boolean
}

export function compatible(dialect: Dialect): Vendor {
  const { root = '', outputCap = 'max_tokens', usageInStream = 'asked', storesByDefault = false } = dialect
  return {
    id: dialect.id,
    baseUrl: dialect.baseUrl,
    environment: dialect.environment ?? [],
    hangup: dialect.hangup ?? 'stop',
    local: dialect.local ?? false,
    explain,
    chat: {
      protocol: 'openai',
      start: (ask, context) => ({
        url: `${context.baseUrl}${root}/chat/completions`,
        headers: {
          authorization: `Bearer ${context.credential}`,
          'content-type': 'application/json',
          'x-client-request-id': context.ref,
        },
        body: writeAsk(ask, {
          upstreamModel: context.upstreamModel,
          reasoning: context.reasoning,
          outputCap,
          usageInStream,
          storesByDefault,
          namespaced: (label) => context.namespaced(label),
        }),
      }),
    },
  }
}
