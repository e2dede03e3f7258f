import type { AttemptId } from '../base/ids.ts'
import { asGatewayError, type GatewayError } from '../base/errors.ts'
import { isSuccess } from '../base/status.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import type { Task } from '../store/tasks.ts'
import type { Channel, Route } from '../upstream/channels.ts'
import { readRefusalBody } from '../upstream/read-refusal-body.ts'
import { restCredential } from '../upstream/rest-credential.ts'
import { readRetryAfter } from '../upstream/retry-after.ts'
import type { Timeouts } from '../upstream/transport.ts'
import type { Call, CallContext, VendorResponse, Verdict, VideoAdapter } from '../vendors/vendor.ts'
import type { TaskParts } from './parts.ts'

type CallParts = Pick<TaskParts, 'transport' | 'tenantLabel' | 'clock'>

export type Answered = VendorResponse & { readonly kind: 'answered'; readonly status: number }
export type Unanswered = {
  readonly kind: 'failed'
  readonly error: GatewayError
  /** `unsent`: the vendor was never reached. `unknown`: it may have received the call and be working on it. */
  readonly delivery: 'unsent' | 'unknown'
}

// Bounds a task's record, or a page of a list.
const answerBytesMax = 8 * 1024 * 1024

/**
 * Makes one call and reads its whole response. A call that must not be made twice needs a connection of its own: the
 * vendor may close a kept one at that very moment, and then it is unknown whether it received the call.
 */
export async function makeCall(
  parts: CallParts,
  call: Call,
  how: { timeouts: Timeouts; connection: 'kept' | 'new'; ref: string; signal: AbortSignal },
): Promise<Answered | Unanswered> {
  const headers = { ...call.headers, 'x-client-request-id': how.ref }
  const sent = await parts.transport.send({ ...call, headers }, how.timeouts, how.signal, how.connection)
  if (sent.kind === 'failed') {
    return { kind: 'failed', error: sent.error, delivery: sent.delivery === 'unsent' ? 'unsent' : 'unknown' }
  }
  const { exchange } = sent
  try {
    const { status } = exchange
    const body = await (isSuccess(status) ? exchange.readAll(answerBytesMax) : readRefusalBody(exchange))
    return { kind: 'answered', status, header: (name) => exchange.header(name), body }
  } catch (thrown) {
    exchange.abort()
    return { kind: 'failed', error: asGatewayError(thrown), delivery: 'unknown' }
  }
}

/** The channel that has a task, with a credential of it that works. */
export type TaskRoute = Omit<Route, 'upstreamModel'> & { readonly adapter: VideoAdapter }

/** A channel under this id that now leads to another vendor is another one: its vendor does not know the task. */
export function isAtChannel(task: Pick<Task, 'channel' | 'vendor'>, { id, vendor }: Channel): boolean {
  return id === task.channel && vendor.id === task.vendor
}

// Nodes get a change of the settings one after another, within minutes. The hold outlives the deadline by an hour.
const leftToOthersMs = 10 * 60_000

/**
 * Whether a task is left to other nodes, also for a while after its deadline: its channel is not configured here, but
 * may be where the settings have been changed already, or have not been changed yet.
 */
export function isLeftToOthers(
  { channels, store }: Pick<TaskParts, 'channels' | 'store'>,
  task: Pick<Task, 'channel' | 'vendor' | 'deadline'>,
): boolean {
  if (store.now() >= task.deadline + leftToOthersMs) return false
  return !channels().all.some((one) => isAtChannel(task, one))
}

/**
 * Undefined while the channel is not configured, or polls with all its credentials are refused. A credential that rests
 * because an order or a chat was refused polls all the same: an account without credit can order nothing, but the
 * videos that it has ordered are made and charged.
 */
export function taskRouteOf(
  { channels, allowances }: Pick<TaskParts, 'channels' | 'allowances'>,
  task: Pick<Task, 'channel' | 'vendor'>,
): TaskRoute | undefined {
  const known = channels()
  const channel = known.all.find((one) => isAtChannel(task, one))
  const adapter = channel?.vendor.video
  if (channel === undefined || adapter === undefined) return undefined
  const { id, credentials } = channel
  const credential =
    credentials.find((one) => !known.isResting({ channel, credential: one })) ??
    credentials.find((one) => !allowances.isRefused(id, one))
  return credential === undefined ? undefined : { channel, credential, adapter }
}

/** The route by which a task is sent to its channel again. A credential over its rate for the model can only poll. */
export function resendRoute(
  { channels }: Pick<TaskParts, 'channels'>,
  { channel }: Pick<TaskRoute, 'channel'>,
  { upstreamModel }: Pick<Task, 'upstreamModel'>,
): Route | undefined {
  const routes = channel.credentials.map((credential) => ({ channel, credential, upstreamModel }))
  return routes.find((route) => !channels().isResting(route))
}

export function contextOf(
  { tenantLabel, clock }: Pick<CallParts, 'tenantLabel' | 'clock'>,
  { channel, credential }: Pick<Route, 'channel' | 'credential'>,
  task: Pick<Task, 'attemptId' | 'upstreamModel' | 'accountId'>,
): CallContext {
  return {
    baseUrl: channel.baseUrl,
    credential,
    upstreamModel: task.upstreamModel,
    reasoning: false,
    efforts: [],
    rules: [],
    outputTokensMax: 0,
    now: clock.now(),
    // The gateway made it as an attempt id and stored it as text.
    ref: task.attemptId as AttemptId,
    namespaced: (label) => tenantLabel(`${task.accountId}/${label}`),
  }
}

type Keyed = Pick<Route, 'channel' | 'credential'>

/** Judges a response that is not a success by the vendor's own table, and rests a credential that was refused. */
export function judge(parts: Pick<TaskParts, 'channels' | 'clock' | 'log'>, keyed: Route, answered: Answered): Verdict {
  const verdict = explained(parts, keyed, answered)
  restCredential(parts, keyed, verdict, answered.status)
  return verdict
}

function explained({ clock }: Pick<TaskParts, 'clock'>, { channel, credential }: Keyed, answered: Answered): Verdict {
  return channel.vendor.explain(
    {
      status: answered.status,
      retryAfterSeconds: readRetryAfter((name) => answered.header(name), clock.now()),
      body: decodeUtf8(answered.body),
    },
    { baseUrl: channel.baseUrl, credential },
  )
}

/**
 * Asks the vendor about a task. That can safely be asked again, so it is cut off when the node stops. An error that
 * comes with a 2xx status gets the status that it stands for.
 */
export async function ask(
  parts: TaskParts,
  { adapter }: Pick<TaskRoute, 'adapter'>,
  call: Call,
  { attemptId: ref }: Pick<Task, 'attemptId'>,
): Promise<Answered | Unanswered> {
  const how = { timeouts: parts.timeouts.ask, connection: 'kept', ref, signal: parts.stopping } as const
  const answered = await makeCall(parts, call, how)
  if (answered.kind === 'failed' || adapter.statusOf === undefined) return answered
  return { ...answered, status: adapter.statusOf(answered) }
}

/** A refused credential, a rate limit or a failure of the vendor says nothing about the task. */
export function isAboutUs({ status }: Answered): boolean {
  return status === 401 || status === 403 || status === 429 || status >= 500
}

const pollsRestSecondsMax = 60

/**
 * Judges a response for which `isAboutUs` holds. Vendors limit polls separately: where there were too many, only the
 * polls of the channel wait, and its credential serves everything else. A refused credential is refused for everything.
 */
export function judgeQuestion(
  parts: Pick<TaskParts, 'channels' | 'allowances' | 'clock' | 'log'>,
  taskRoute: Keyed,
  answered: Answered,
): GatewayError {
  const verdict = explained(parts, taskRoute, answered)
  const { error, restCredentialSeconds } = verdict
  const { channel, credential } = taskRoute
  if (error.kind === 'too-many') {
    const waitSeconds = Math.min(error.details.retryAfterSeconds ?? 1, pollsRestSecondsMax)
    parts.allowances.rest(channel.id, waitSeconds * 1000)
  } else if (restCredentialSeconds !== undefined) {
    restCredential(parts, taskRoute, verdict, answered.status)
    parts.allowances.refuse(channel.id, credential, restCredentialSeconds * 1000)
  }
  return error
}
