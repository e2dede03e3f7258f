import { crashPoint } from '../base/crash-points.ts'
import { asGatewayError, GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Label } from '../base/secret.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import type { Channels } from '../upstream/channels.ts'
import type { FetchLink } from '../upstream/links.ts'
import type { Exchange, Timeouts, Transport } from '../upstream/transport.ts'
import type { Call, CallContext } from '../vendors/vendor.ts'
import { sentAttempt } from './attempt-records.ts'
import { brokenOff, explained, failed, noteFailure, readRefusal, withSecretsScrubbed } from './failed.ts'
import type { Failed, Routed } from './stages.ts'

export const answerBytesMax = 64 * 1024 * 1024

/** A stream sends its first byte soon, while a whole answer may take the vendor ten minutes. */
export type CallTimeouts = { readonly stream: Timeouts; readonly whole: Timeouts }

export type CallParts = {
  readonly transport: Transport
  readonly channels: () => Channels
  readonly timeouts: CallTimeouts
  readonly tenantLabel: Label
  readonly fetchLink: FetchLink
  /** Aborts when the node stops, which ends the pauses before a retry. */
  readonly stopping: AbortSignal
  readonly log: Log
}

// Many clients, and nearly every proxy in front of us, give up before our own timeout for a vendor is over. A client
// that leaves after this much silence may be the only sign that the vendor hangs, so it counts against the channel.
const silentMs = 30_000

// Some servers answer every POST with a 201, as their frameworks do by default; official clients take either.
const answerStatuses: ReadonlySet<number> = new Set([200, 201])

/** Sends one call and hands the answer to `accept`; where `accept` throws, the attempt has failed. */
export async function attempt<T>(
  parts: CallParts,
  routed: Routed,
  call: Call,
  accept: (exchange: Exchange) => Promise<T>,
): Promise<Failed | { readonly kind: 'accepted'; readonly accepted: T }> {
  const limits = routed.ask.stream ? parts.timeouts.stream : parts.timeouts.whole
  // The total time is the request's, however many calls it makes, because its hold does not wait longer.
  const begunMs = routed.elapsedMs()
  const timeouts = { ...limits, totalMs: limits.totalMs - begunMs }
  if (timeouts.totalMs <= 0) return { kind: 'failed', error: outOfTime(), retry: 'no', attempts: [] }
  routed.markVendorCalled()
  const recorded = routed.funds.sending(sentAttempt(routed))
  if (recorded !== undefined) await recorded
  parts.channels().asking(routed.route, timeouts.totalMs)
  crashPoint('after-send')
  const sent = await parts.transport.send(call, timeouts, routed.signal, routed.connection)
  if (sent.kind === 'failed') {
    if (sent.error.kind === 'client-gone' && routed.elapsedMs() - begunMs >= silentMs) noteFailure(parts, routed)
    if (sent.delivery === 'unknown') return brokenOff(parts, routed, 0, sent.error)
    const retry = sent.delivery === 'unsent' ? 'elsewhere' : 'anew'
    return failed(parts, routed, { status: 0, error: sent.error, retry })
  }
  const { exchange } = sent
  crashPoint('after-send')
  try {
    if (!answerStatuses.has(exchange.status)) return explained(parts, routed, await readRefusal(exchange, routed))
    checkEncoding(exchange)
    const accepted = await accept(exchange)
    // A stream has only begun: its relay reports the channel as answering once it has come to its end.
    if (routed.ask.stream) parts.channels().leftOpen(routed.route)
    else parts.channels().answered(routed.route)
    return { kind: 'accepted', accepted }
  } catch (thrown) {
    exchange.abort()
    const error = asGatewayError(thrown)
    const { inside } = error.details
    if (inside !== undefined) return explained(parts, routed, inside)
    return brokenOff(parts, routed, exchange.status, withSecretsScrubbed(error, routed))
  } finally {
    // Until there is something to deliver, a client that leaves ends the call; from then on metering decides.
    exchange.outliveClient()
  }
}

/**
 * Fetches a link for a request that is under way. It counts towards the request's total time, as a call does: the limit
 * of a link is a minute, after which the hold may have run out.
 */
export async function fetchInTime(
  { fetchLink, timeouts }: Pick<CallParts, 'fetchLink' | 'timeouts'>,
  routed: Pick<Routed, 'ask' | 'route' | 'elapsedMs'>,
  link: Parameters<FetchLink>[0],
  signal: AbortSignal,
): ReturnType<FetchLink> {
  const { totalMs } = routed.ask.stream ? timeouts.stream : timeouts.whole
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(outOfTime()), totalMs - routed.elapsedMs())
  try {
    return await fetchLink(link, routed.route.channel, AbortSignal.any([signal, late.signal]))
  } finally {
    clearTimeout(timer)
  }
}

function outOfTime(): GatewayError {
  return new GatewayError('upstream-timeout', 'The request exceeded its time limit.')
}

type Addressed = Pick<Routed, 'route' | 'model' | 'attemptId' | 'principal'>

export function contextOf(routed: Addressed, tenantLabel: Label): CallContext {
  const { channel, credential, upstreamModel } = routed.route
  const { reasoning, efforts, rules, outputTokensMax } = routed.model
  return {
    baseUrl: channel.baseUrl,
    credential,
    upstreamModel,
    reasoning,
    efforts,
    rules,
    outputTokensMax,
    ref: routed.attemptId,
    namespaced: (label) => tenantLabel(`${routed.principal.accountId}/${label}`),
  }
}

/** We ask for uncompressed bytes: unpacking what a vendor compresses unasked could turn a kilobyte into a gigabyte. */
function checkEncoding(exchange: Exchange): void {
  const encoding = exchange.header('content-encoding')
  if (encoding === null || /^(?:identity)?$/i.test(encoding)) return
  throw new GatewayError('upstream-failed', "The model's vendor sent an answer in an encoding that was not requested.")
}

const streamType = /^text\/event-stream/i
// JSON or a page, by its first character.
const otherBody = /^\s*[[{"<]/

/** Local servers and gateways often give a stream no type, or a wrong one, which official clients do not look at. */
export async function streams({ ask }: Routed, exchange: Exchange): Promise<boolean> {
  if (!ask.stream) return false
  if (streamType.test(exchange.header('content-type') ?? '')) return true
  // Nobody knows the length of a stream in advance: a body with one is an error or a whole answer in its place.
  if (exchange.header('content-length') !== null) return false
  const first = await exchange.peek()
  return first !== undefined && !otherBody.test(decodeUtf8(first))
}

export function didNotStream(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor did not stream.")
}
