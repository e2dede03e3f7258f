import { crashPoint } from '../base/crash-points.ts'
import { asGatewayError, badRequest, GatewayError } from '../base/errors.ts'
import { isSuccess } from '../base/status.ts'
import type { VideoAsk } from '../capabilities/video.ts'
import { isOfferedAt, type Offer } from '../catalogue/model.ts'
import { findTask, type Task } from '../store/tasks.ts'
import type { Route } from '../upstream/channels.ts'
import { LinkTime } from '../upstream/link-time.ts'
import type { Call, CreateContext, VendorResponse, VideoAdapter } from '../vendors/vendor.ts'
import { type Answered, contextOf, isAtChannel, judge, makeCall, type Unanswered } from './calls.ts'
import type { TaskParts } from './parts.ts'

/** What became of a creation. */
export type SendOutcome =
  | { readonly kind: 'created'; readonly upstreamId: string }
  /** The vendor refuses the order and has made nothing. */
  | {
      readonly kind: 'refused'
      readonly error: GatewayError
      readonly status: number
      /** Whether another channel may take it. */
      readonly elsewhere: boolean
      /** Whether this channel may take it later, because our credential or the vendor is at fault and not the order. */
      readonly later: boolean
    }
  /** The order never left the gateway. */
  | { readonly kind: 'unsent'; readonly error: GatewayError }
  /** The vendor may have the order, and may charge for it. */
  | { readonly kind: 'doubt'; readonly error: GatewayError }

export type NotTaken = Extract<SendOutcome, { kind: 'refused' | 'unsent' }>

/** A creation, written for one channel. */
export type Leg = {
  readonly route: Route
  readonly adapter: VideoAdapter
  /** Files that the vendor must have before the order. */
  readonly uploads: readonly Call[]
  /** The order itself, which names the uploaded files. */
  write(uploaded: readonly string[]): Call
  readonly ref: string
}

type Addressed = Pick<Task, 'id' | 'accountId' | 'attemptId'>

// Bounds a first frame or a reference that a vendor wants as bytes.
const fetchedBytesMax = 32 * 1024 * 1024

/** An order to be written, the time that its client's links may still take, and what ends the fetching of them. */
type Unwritten = {
  readonly task: Addressed
  readonly ask: VideoAsk
  readonly linkTime: LinkTime
  readonly refused: AbortSignal
}

/** The time for an order's links, enough for two channels: each that it is written for fetches them anew. */
export function linkTimeOf({ timeouts }: Pick<TaskParts, 'timeouts'>): LinkTime {
  return new LinkTime(2 * timeouts.ask.totalMs)
}

/** Writes a creation for one channel. Throws where the vendor would not take it, or a URL of the client is no good. */
export async function writeLeg(parts: TaskParts, route: Route, order: Unwritten): Promise<Leg> {
  const { task, ask } = order
  const { channel, upstreamModel } = route
  const adapter = channel.vendor.video
  if (adapter === undefined) throw new GatewayError('bug', `${channel.vendor.id} makes no videos`)
  const context: CreateContext = {
    ...contextOf(parts, route, { ...task, upstreamModel }),
    ...(parts.callbacks !== undefined && { callbackUrl: parts.callbacks.urlOf(task.id) }),
    ...(ask.draftOf !== undefined && { draftUpstreamId: await draftAt(parts, route, task.accountId, ask) }),
    ...(adapter.fetches !== undefined && {
      fetched: await fetchAll(parts, route, adapter.fetches(ask), order),
    }),
  }
  const uploads = adapter.upload?.calls(ask, context) ?? []
  const write = (uploaded: readonly string[]) => adapter.create(ask, { ...context, uploaded })
  // Written at once where nothing is uploaded first, so that an order the vendor would not take is never recorded.
  const written = uploads.length === 0 ? write([]) : undefined
  return { route, adapter, uploads, write: (uploaded) => written ?? write(uploaded), ref: task.attemptId }
}

/** How long a leg may take: the whole timeout for each of its calls. */
export function legMs({ timeouts }: Pick<TaskParts, 'timeouts'>, { uploads }: Pick<Leg, 'uploads'>): number {
  return timeouts.create.totalMs * (uploads.length + 1)
}

/** The draft that an ask finishes: it must be the account's own, and made at a channel that offers the model. */
export async function draftFor(
  parts: TaskParts,
  accountId: string,
  ask: Pick<VideoAsk, 'draftOf' | 'draftAt'>,
  offers: readonly Offer[],
): Promise<Task> {
  const draft = await findTask(parts.store.db, { accountId, id: ask.draftOf ?? '' })
  if (draft === undefined || draft.upstreamId === null) throw noDraft(ask)
  if (!offers.some((offer) => isOfferedAt(offer, draft.channel, draft.vendor))) throw noDraft(ask)
  return draft
}

/** The vendor's id of the draft, which can only be finished at the channel that made it. */
async function draftAt(parts: TaskParts, { channel }: Route, accountId: string, ask: VideoAsk): Promise<string> {
  const draft = await findTask(parts.store.db, { accountId, id: ask.draftOf ?? '' })
  if (draft === undefined || draft.upstreamId === null || !isAtChannel(draft, channel)) throw noDraft(ask)
  return draft.upstreamId
}

function noDraft({ draftAt: at = 'input' }: Pick<VideoAsk, 'draftAt'>): GatewayError {
  return badRequest('There is no such draft.', at)
}

async function fetchAll(
  parts: TaskParts,
  { channel }: Route,
  urls: readonly string[],
  { ask, linkTime, refused }: Unwritten,
): Promise<Map<string, VendorResponse>> {
  const fetched = new Map<string, VendorResponse>()
  const fetch = linkTime.bound(parts.fetchLink, () => parts.clock.monotonic())
  for (const url of new Set(urls)) {
    const link = { transport: 'guarded', url, bytesMax: fetchedBytesMax, at: fieldOf(ask, url) } as const
    fetched.set(url, await fetch(link, channel, refused))
  }
  return fetched
}

/** The field in which the client gave a URL: one of its own, or the list of media. */
function fieldOf({ input }: VideoAsk, url: string): string {
  return `input.${Object.keys(input).find((name) => input[name] === url) ?? 'media'}`
}

/** Sends the order once. It is carried through even if the client hangs up or the node is about to stop. */
export async function sendLeg(parts: TaskParts, leg: Leg): Promise<SendOutcome> {
  const brought = await bringUploads(parts, leg)
  if (brought.kind !== 'brought') return brought
  const answered = await callOnce(parts, leg, leg.write(brought.names))
  crashPoint('task-sent')
  if (answered.kind === 'failed') {
    const { error, delivery } = answered
    return delivery === 'unsent' ? { kind: 'unsent', error } : { kind: 'doubt', error }
  }
  if (!isSuccess(answered.status)) return refusalOf(parts, leg, answered)
  try {
    const created = leg.adapter.readCreated(answered)
    if (typeof created === 'string') return { kind: 'created', upstreamId: created }
    return refusalOf(parts, leg, { ...answered, status: created.errorStatus })
  } catch (thrown) {
    // A response that cannot be read may still mean that the vendor took the order.
    return { kind: 'doubt', error: asGatewayError(thrown) }
  }
}

/** Uploads every file before the order is sent, so that a failure here leaves nothing in doubt. */
async function bringUploads(
  parts: TaskParts,
  leg: Leg,
): Promise<{ readonly kind: 'brought'; readonly names: readonly string[] } | NotTaken> {
  const names: string[] = []
  for (const call of leg.uploads) {
    const answered = await callOnce(parts, leg, call)
    if (answered.kind === 'failed') return { kind: 'unsent', error: answered.error }
    if (!isSuccess(answered.status)) return refusedBy(parts, leg, answered)
    try {
      const name = leg.adapter.upload?.read(answered)
      if (typeof name === 'object') return refusedBy(parts, leg, { ...answered, status: name.errorStatus })
      if (name !== undefined) names.push(name)
    } catch (thrown) {
      return { kind: 'unsent', error: asGatewayError(thrown) }
    }
  }
  return { kind: 'brought', names }
}

const never = new AbortController().signal

function callOnce(parts: TaskParts, { ref }: Leg, call: Call): Promise<Answered | Unanswered> {
  return makeCall(parts, call, { timeouts: parts.timeouts.create, connection: 'new', ref, signal: never })
}

function refusalOf(parts: TaskParts, leg: Leg, answered: Answered): SendOutcome {
  const refused = refusedBy(parts, leg, answered)
  const { error, status } = refused
  return mayHaveBegun(status, error) ? { kind: 'doubt', error } : refused
}

function refusedBy(parts: TaskParts, { route }: Leg, answered: Answered): Extract<SendOutcome, { kind: 'refused' }> {
  const { status } = answered
  const { error, retryable, restCredentialSeconds } = judge(parts, route, answered)
  const later = retryable && (restCredentialSeconds !== undefined || status >= 500)
  return { kind: 'refused', error, status, elsewhere: retryable, later }
}

/** Errors that mean the vendor made nothing, whatever the status: it has no room, or it rejects the order. */
const sureRefusals: ReadonlySet<GatewayError['kind']> = new Set(['too-many', 'upstream-rejected'])

/** A vendor that answers 5xx may still have created the task, and a proxy that timed out cannot tell. */
function mayHaveBegun(status: number, { kind }: GatewayError): boolean {
  if (status === 408 || status === 504) return true
  return status >= 500 && !sureRefusals.has(kind)
}
