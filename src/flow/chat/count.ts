import { newAttemptId } from '../../base/ids.ts'
import type { Model } from '../../catalogue/model.ts'
import type { Limiter } from '../../limits/limiter.ts'
import type { Route } from '../../upstream/channels.ts'
import type { Call, ChatAdapter } from '../../vendors/vendor.ts'
import { contextOf, type CallParts } from '../attempt.ts'
import type { ChatCodec } from '../../capabilities/chat.ts'
import { findModelFor } from '../admit.ts'
import { traitsOf } from '../traits.ts'
import type { Parts } from '../run.ts'
import type { Authenticated, Received } from '../stages.ts'

const countBytesMax = 64 * 1024

export type CountParts = Omit<CallParts, 'log' | 'fetchLink'> & {
  readonly authenticate: Parts['authenticate']
  readonly limiter: Limiter
  readonly models: () => ReadonlyMap<string, Model>
}

export type Asking = Omit<Received, 'job'> & { readonly codec: Pick<ChatCodec, 'readAsk' | 'estimateInput'> }

export type Count = (asking: Asking) => Promise<number>

/**
 * How many tokens an input has, for nothing: by the vendor's own count where it gives one to clients of its protocol, else
 * by ours. Counted by a limiter of its own, since a tool that looks at its context asks a dozen times at once.
 */
export function makeCount(parts: CountParts): Count {
  return async (asking) => {
    const authenticated = await parts.authenticate(asking)
    const { principal, say } = authenticated
    const pass = await parts.limiter.enter(principal.keyId, principal.limits, say)
    try {
      return await count(parts, authenticated)
    } finally {
      pass.leave(0)
    }
  }
}

async function count(parts: CountParts, asking: Asking & Pick<Authenticated, 'principal'>): Promise<number> {
  const { codec, principal } = asking
  const { body, files, bytes } = await asking.readBody()
  const models = parts.models()
  const asked = { body, files, bodyBytes: bytes, header: (name: string) => asking.header(name) }
  let model: Model | undefined
  const ask = codec.readAsk(asked, (id) => traitsOf((model = findModelFor('chat', models, principal, id)), id))
  for (const route of parts.channels().routes(model?.offers ?? [])) {
    const { chat } = route.channel.vendor
    if (model === undefined || chat?.count === undefined || chat.protocol !== ask.protocol) continue
    const context = contextOf({ principal, route, model, attemptId: newAttemptId() }, parts.tenantMac)
    const counted = await countAt(parts, route, chat.count, chat.count.call(ask, context), asking.signal)
    if (counted !== undefined) return counted
  }
  return codec.estimateInput(ask)
}

/** The vendor's count; undefined where it has none to give now. What it refuses as the client's fault is refused. */
async function countAt(
  parts: CountParts,
  { channel, credential }: Route,
  counter: NonNullable<ChatAdapter['count']>,
  call: Call,
  signal: AbortSignal,
): Promise<number | undefined> {
  const sent = await parts.transport.send(call, parts.timeouts.stream, signal, 'kept')
  if (sent.kind === 'failed') {
    if (sent.error.kind === 'client-gone') throw sent.error
    return undefined
  }
  const { exchange } = sent
  const body = await exchange.readAll(countBytesMax).catch(() => new Uint8Array())
  if (exchange.status === 200) return counter.read(body)
  const refusal = { status: exchange.status, retryAfterSeconds: undefined, body: new TextDecoder().decode(body) }
  const { error } = channel.vendor.explain(refusal, { baseUrl: channel.baseUrl, credential })
  if (error.kind === 'upstream-rejected') throw error
  return undefined
}
