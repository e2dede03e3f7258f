import { asGatewayError, type ErrorKind } from '../../base/errors.ts'
import { newAttemptId, type AttemptId } from '../../base/ids.ts'
import { zeroNano } from '../../base/money.ts'
import type { ChatAsk, CountCodec } from '../../capabilities/chat.ts'
import type { ModelsOnOffer } from '../../catalogue/model.ts'
import type { Limiter } from '../../limits/limiter.ts'
import type { Route } from '../../upstream/channels.ts'
import { isInside } from '../../upstream/links.ts'
import { restCredential } from '../../upstream/rest-credential.ts'
import type { Call, ChatAdapter } from '../../vendors/vendor.ts'
import { contextOf, type CallParts } from '../attempt.ts'
import { json } from '../content-types.ts'
import { judge, logFailure, readRefusal } from '../failed.ts'
import { readAsked } from '../read-asked.ts'
import type { Line } from '../run.ts'
import type { Authenticated, Received, WholeAnswer } from '../stages.ts'
import { linksInAsk } from './inline-media.ts'

const countBytesMax = 64 * 1024

export type CountParts = Omit<CallParts, 'fetchLink' | 'stopping'> & {
  readonly authenticate: Line['authenticate']
  readonly once: Line['once']
  readonly limiter: Limiter
  readonly models: () => ModelsOnOffer
}

export type Asking = Omit<Received, 'job'> & { readonly codec: CountCodec }

export type Count = (asking: Asking) => Promise<WholeAnswer>

/**
 * Counts the tokens of an input, free of charge: by the vendor's own count where it gives one in the client's protocol,
 * otherwise by our estimate. It has a limiter of its own, since a tool that inspects its context asks a dozen times at
 * once.
 */
export function makeCount(parts: CountParts): Count {
  return async (asking) => {
    const principal = await parts.authenticate(asking)
    const pass = await parts.limiter.enter(principal.keyId, principal.limits, asking.setHeader)
    try {
      return await parts.once({ ...asking, principal, pass }, async () => {
        return answerOf(await count(parts, { ...asking, principal }))
      })
    } finally {
      pass.leave(0)
    }
  }
}

function answerOf(tokens: number): WholeAnswer {
  const body = new TextEncoder().encode(JSON.stringify({ input_tokens: tokens }))
  return { kind: 'whole', body, contentType: json, cost: zeroNano }
}

async function count(parts: CountParts, asking: Asking & Pick<Authenticated, 'principal'>): Promise<number> {
  const { codec } = asking
  const among = { models: parts.models, capability: 'chat' } as const
  const body = await asking.readBody()
  const { read: ask, model } = readAsked(body, asking, among, (asked, lookUp) => codec.readAsk(asked, lookUp))
  const channels = parts.channels()
  for (const route of channels.routes(model.offers)) {
    const { chat } = route.channel.vendor
    if (chat?.count === undefined || chat.protocol !== ask.protocol) continue
    // A server on the operator's own network is sent no links, and a count is not worth fetching what they lead to.
    if (isInside(route.channel) && linksInAsk({ ask, codec }).length > 0) continue
    const counting = { ...asking, route, ask, attemptId: newAttemptId() }
    const context = contextOf({ ...counting, model }, parts.tenantLabel)
    const counted = await countAt(parts, counting, chat.count, chat.count.call(ask, context))
    if (counted !== undefined) return counted
  }
  // A chat with these vendors would be translated, and what they cannot be told is refused here as it is there.
  const protocols = new Set(channels.places(model.offers).map(({ channel }) => channel.vendor.chat?.protocol))
  if (protocols.size > 0 && !protocols.has(ask.protocol)) codec.checkTranslated(ask)
  return codec.estimateInput(ask)
}

type Counting = Pick<Asking, 'requestId' | 'signal' | 'receivedAt' | 'elapsedMs'> & {
  readonly route: Route
  readonly ask: ChatAsk
  readonly attemptId: AttemptId
}

/** What an estimate must not hide: a fault of the request or of ours. A client that has left needs no estimate. */
const finalKinds: ReadonlySet<ErrorKind> = new Set(['upstream-rejected', 'client-gone', 'bug'])

/**
 * The vendor's count; undefined where it gives none now, and the log tells the operator why. Throws where the vendor
 * refuses the request as the client's fault.
 */
async function countAt(
  parts: CountParts,
  counting: Counting,
  counter: NonNullable<ChatAdapter['count']>,
  call: Call,
): Promise<number | undefined> {
  const sent = await parts.transport.send(call, parts.timeouts.stream, counting.signal, 'kept')
  if (sent.kind === 'failed') {
    if (sent.error.kind === 'client-gone') throw sent.error
    logFailure(parts, counting, 0, sent.error)
    return undefined
  }
  const { exchange } = sent
  try {
    if (exchange.status === 200) return counter.read(await exchange.readAll(countBytesMax))
    const verdict = judge(counting.route, await readRefusal(exchange, counting))
    // A key over its rate for counting still answers, as the vendor limits the two separately. A refused key does not.
    if (exchange.status !== 429) restCredential(parts, counting.route, verdict, exchange.status)
    throw verdict.error
  } catch (thrown) {
    const error = asGatewayError(thrown)
    if (finalKinds.has(error.kind)) throw error
    logFailure(parts, counting, exchange.status, error)
    return undefined
  }
}
