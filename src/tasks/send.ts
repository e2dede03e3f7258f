import { crashPoint } from '../base/crash-points.ts'
import { asGatewayError, GatewayError, type Kind } from '../base/errors.ts'
import { withoutSecrets } from '../base/log.ts'
import type { VideoAsk } from '../capabilities/video.ts'
import { findTask, type Task } from '../store/tasks.ts'
import type { Route } from '../upstream/channels.ts'
import type { Call, CreateContext, Responded, VideoAdapter } from '../vendors/vendor.ts'
import { contextOf, judge, makeCall } from './calls.ts'
import type { TaskParts } from './parts.ts'

/** What became of a creation. */
export type SendOutcome =
  | { readonly kind: 'created'; readonly upstreamId: string }
  /** The vendor will not have it, and has made nothing. */
  | {
      readonly kind: 'refused'
      readonly error: GatewayError
      readonly status: number
      /** Whether another channel may take it. */
      readonly elsewhere: boolean
    }
  /** It never left us. */
  | { readonly kind: 'unsent'; readonly error: GatewayError }
  /** The vendor may have it, and may charge for it. */
  | { readonly kind: 'doubt'; readonly error: GatewayError }

/** A creation, spelled out for one channel. */
export type Leg = {
  readonly route: Route
  readonly adapter: VideoAdapter
  readonly call: Call
  readonly ref: string
}

type Addressed = Pick<Task, 'id' | 'accountId' | 'attemptId'>

// A first frame or a reference that a vendor wants as bytes.
const fetchedBytesMax = 32 * 1024 * 1024

/** Spells a creation out. Throws for what the vendor would not take, and for addresses of the client that are no good. */
export async function writeLeg(parts: TaskParts, route: Route, task: Addressed, ask: VideoAsk): Promise<Leg> {
  const { channel, upstreamModel } = route
  const adapter = channel.vendor.video
  if (adapter === undefined) throw new GatewayError('bug', `${channel.vendor.id} makes no videos`)
  const context: CreateContext = {
    ...contextOf(parts, route, { ...task, upstreamModel }),
    ...(parts.callbacks !== undefined && { callbackUrl: parts.callbacks.urlOf(task.id) }),
    ...(ask.draftOf !== undefined && { draftUpstreamId: await draftAt(parts, route, task.accountId, ask.draftOf) }),
    ...(adapter.fetches !== undefined && { fetched: await fetchAll(parts, route, adapter.fetches(ask)) }),
  }
  return { route, adapter, call: adapter.create(ask, context), ref: task.attemptId }
}

/** A draft is the account's own, and is finished where it was made. */
export async function channelOfDraft(parts: TaskParts, accountId: string, draftOf: string): Promise<string> {
  return (await draftTask(parts, accountId, draftOf)).channel
}

async function draftAt(parts: TaskParts, { channel }: Route, accountId: string, draftOf: string): Promise<string> {
  const draft = await draftTask(parts, accountId, draftOf)
  if (draft.upstreamId === null || draft.channel !== channel.id) throw noDraft()
  return draft.upstreamId
}

async function draftTask(parts: TaskParts, accountId: string, id: string): Promise<Task> {
  const draft = await findTask(parts.store.db, { accountId, id })
  if (draft === undefined) throw noDraft()
  return draft
}

function noDraft(): GatewayError {
  return new GatewayError('bad-request', 'There is no such draft.', { code: 'invalid_value', param: 'input' })
}

async function fetchAll(parts: TaskParts, route: Route, urls: readonly string[]): Promise<Map<string, Responded>> {
  const fetched = new Map<string, Responded>()
  const signal = AbortSignal.timeout(parts.timeouts.ask.totalMs)
  for (const url of new Set(urls)) {
    const link = { transport: 'guarded', url, bytesMax: fetchedBytesMax } as const
    fetched.set(url, await parts.fetchLink(link, route.channel, signal))
  }
  return fetched
}

/** Sends it, once. Whoever asked may be gone: what was begun is carried through. */
export async function sendLeg(parts: TaskParts, leg: Leg): Promise<SendOutcome> {
  const how = { timeouts: parts.timeouts.create, connection: 'new', ref: leg.ref } as const
  const answered = await makeCall(parts, leg.call, how)
  crashPoint('task-sent')
  if (answered.kind === 'failed') {
    const { error, delivery } = answered
    return delivery === 'unsent' ? { kind: 'unsent', error } : { kind: 'doubt', error }
  }
  const { status } = answered
  if (status >= 200 && status < 300) return readCreated(leg, answered, status)
  const { error, retryable } = judge(parts, leg.route, answered)
  return mayHaveBegun(status, error)
    ? { kind: 'doubt', error }
    : { kind: 'refused', error, status, elsewhere: retryable }
}

/** Who fails with 5xx may have made it all the same, and a proxy that gave up does not know; who has no room has not. */
function mayHaveBegun(status: number, { kind }: GatewayError): boolean {
  if (status === 408 || status === 504) return true
  return status >= 500 && kind !== 'too-many'
}

/** Ways to say no under a good status. Anything else that cannot be read may be a yes. */
const refusalKinds: ReadonlySet<Kind> = new Set(['upstream-rejected', 'bad-request', 'too-many', 'overloaded'])

function readCreated({ adapter, route }: Leg, answered: Responded, status: number): SendOutcome {
  try {
    const upstreamId = adapter.readCreated(answered)
    if (upstreamId !== '') return { kind: 'created', upstreamId }
    return { kind: 'doubt', error: new GatewayError('upstream-failed', 'The vendor gave no id.') }
  } catch (thrown) {
    const { kind, message, details } = asGatewayError(thrown)
    const secrets = { baseUrl: route.channel.baseUrl, credential: route.credential }
    const error = new GatewayError(kind, withoutSecrets(message, secrets), details)
    if (refusalKinds.has(kind) || details.refusal !== undefined) {
      return { kind: 'refused', error, status, elsewhere: false }
    }
    return { kind: 'doubt', error }
  }
}
