import { forbidRetry, GatewayError, type ErrorKind } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { zeroNano } from '../base/money.ts'
import { withoutSecrets } from '../base/scrub.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Channels, Route } from '../upstream/channels.ts'
import { readRefusalBody } from '../upstream/read-refusal-body.ts'
import { restCredential } from '../upstream/rest-credential.ts'
import { readRetryAfter } from '../upstream/retry-after.ts'
import type { Exchange } from '../upstream/transport.ts'
import type { BadResponse, Verdict } from '../vendors/vendor.ts'
import { attemptRecord } from './attempt-records.ts'
import type { Failed, Retry, Routed } from './stages.ts'

type Parts = { readonly channels: () => Channels; readonly log: Log }

/** `status`: the vendor's, or 0 where it sent none. */
type Failure = { readonly status: number; readonly error: GatewayError; readonly retry: Retry }

/** An attempt that gave nothing to deliver: logged, counted for or against its channel, and on record. */
export function failed(parts: Parts, routed: Routed, { status, error, retry }: Failure): Failed {
  logFailure(parts, routed, status, error)
  tellChannels(parts, routed, status, error)
  return {
    kind: 'failed',
    error,
    retry,
    attempts: [attemptRecord(routed, { status, vendorCost: zeroNano, delivered: false })],
  }
}

/** The vendor had begun, gave no usable answer, and may charge all the same. */
export function brokenOff(parts: Parts, routed: Routed, status: number, error: GatewayError): Failed {
  return { ...failed(parts, routed, { status, error: forbidRetry(error), retry: 'no' }), mayBeCharged: true }
}

/** One of several calls failed and others are charged for: trying elsewhere would mean paying for those again. */
export function failedBesidePaid(failure: Failed, attempts: readonly AttemptRecord[]): Failed {
  return { ...failure, error: forbidRetry(failure.error), retry: 'no', mayBeCharged: true, attempts }
}

/** The vendor refused the call. Its words decide whose fault that is, and whether the credential should rest. */
export function explained(parts: Parts, routed: Routed, refusal: BadResponse): Failed {
  const verdict = verdictOn(parts, routed, refusal)
  const retry = verdict.retryable ? 'elsewhere' : 'no'
  return failed(parts, routed, { status: refusal.status, error: verdict.error, retry })
}

/**
 * A refusal in the middle of an answer is judged like one before it. The client reads the vendor's own words about a
 * fault of the vendor, but not about a matter between the vendor and the operator, like a refused key.
 */
export function failedInside(parts: Parts, routed: Routed, error: GatewayError): GatewayError {
  const { inside } = error.details
  if (inside === undefined) {
    tellChannels(parts, routed, 0, error)
    return withSecretsScrubbed(error, routed)
  }
  const { error: judged, restCredentialSeconds } = verdictOn(parts, routed, inside)
  tellChannels(parts, routed, inside.status, judged)
  return judged.kind === 'upstream-failed' && restCredentialSeconds === undefined
    ? withSecretsScrubbed(error, routed)
    : judged
}

type Timed = Pick<Routed, 'receivedAt' | 'elapsedMs'>

export async function readRefusal(exchange: Exchange, { receivedAt, elapsedMs }: Timed): Promise<BadResponse> {
  const body = await readRefusalBody(exchange).catch(() => new Uint8Array())
  const retryAfterSeconds = readRetryAfter((name) => exchange.header(name), receivedAt + elapsedMs())
  return { status: exchange.status, retryAfterSeconds, body: decodeUtf8(body) }
}

function verdictOn(parts: Parts, { route }: Routed, refusal: BadResponse): Verdict {
  const verdict = judge(route, refusal)
  restCredential(parts, route, verdict, refusal.status)
  return verdict
}

export function judge({ channel, credential }: Route, refusal: BadResponse): Verdict {
  return channel.vendor.explain(refusal, { baseUrl: channel.baseUrl, credential })
}

/** Counts failures against the channel. A client that left says nothing about it; a refusal shows that it answers. */
function tellChannels(parts: Parts, routed: Routed, status: number, { kind }: GatewayError): void {
  const { route } = routed
  const channels = parts.channels()
  const isFailure = kind === 'upstream-failed' || kind === 'upstream-timeout' || status >= 500
  // A key that was refused is resting by now and does not count against the channel: its next key may be good.
  if (isFailure && !(status > 0 && channels.isResting(route))) noteFailure(parts, routed)
  else if (status > 0 && kind !== 'client-gone') channels.answered(route)
  else channels.leftOpen(route)
}

const failsAgain =
  'a channel keeps failing for a model: other channels are tried first, and one request a minute checks whether it has recovered'

export function noteFailure(parts: Parts, { route, requestId }: Routed): void {
  const { channel, upstreamModel } = route
  if (!parts.channels().failed(route, requestId)) return
  parts.log.error({ channel: channel.id, vendor: channel.vendor.id, upstreamModel }, failsAgain)
}

/** The client left, or the request itself was refused. */
const causedByClient: ReadonlySet<ErrorKind> = new Set(['client-gone', 'upstream-rejected', 'bad-request'])

const unknownThere =
  "an attempt failed: the vendor knows no such model or path; compare the channel's baseUrl and the upstreamModel with " +
  'what it documents'

/** Logs a failed attempt for the operator, who can do nothing about what its client caused. */
export function logFailure(
  parts: Pick<Parts, 'log'>,
  routed: Pick<Routed, 'requestId' | 'attemptId' | 'route'> & { readonly ask: { readonly model: string } },
  status: number,
  error: GatewayError,
): void {
  if (causedByClient.has(error.kind)) return
  const { cause } = error.details
  parts.log.warn(
    {
      request: routed.requestId,
      attempt: routed.attemptId,
      channel: routed.route.channel.id,
      model: routed.ask.model,
      upstreamModel: routed.route.upstreamModel,
      status,
      kind: error.kind,
      cause: cause instanceof Error ? cause.message : undefined,
    },
    status === 404 ? unknownThere : 'an attempt failed',
  )
}

/** Removes secrets: a vendor that fails under status 200 uses its own words, which may name our key or its address. */
export function withSecretsScrubbed(error: GatewayError, { route }: Routed): GatewayError {
  const { channel, credential } = route
  const message = withoutSecrets(error.message, { baseUrl: channel.baseUrl, credential })
  return message === error.message ? error : new GatewayError(error.kind, message, error.details)
}
