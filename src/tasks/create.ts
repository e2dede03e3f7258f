import { crashPoint } from '../base/crash-points.ts'
import { asGatewayError, forbidRetry, GatewayError } from '../base/errors.ts'
import { newAttemptId, newId, newOpaqueId, type RequestId } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import { zeroNano, type Nano } from '../base/money.ts'
import { pause } from '../base/pause.ts'
import { writePriceList } from '../billing/pinned.ts'
import { holdFor } from '../billing/price.ts'
import { recordedStatus } from '../billing/record.ts'
import { accountDisabled } from '../billing/refusals.ts'
import type { VideoAsk } from '../capabilities/video.ts'
import type { Model } from '../catalogue/model.ts'
import { storeError } from '../store/faults.ts'
import type { SpendingCap } from '../store/keys.ts'
import { leasedOf } from '../store/leases.ts'
import type { Tx } from '../store/schema.ts'
import { type NewTask, recordTask, rerouteTask, type Task, taskOnceRecorded } from '../store/tasks.ts'
import type { Channel, Route } from '../upstream/channels.ts'
import type { LinkTime } from '../upstream/link-time.ts'
import { nobodyServes, type PassedOver } from '../upstream/nobody-serves.ts'
import { adopt, rereadTask, keepInDoubt } from './adopt.ts'
import { isAtChannel } from './calls.ts'
import { attemptOf, endTask, type TaskEnd } from './end.ts'
import type { Orderer } from './orderer.ts'
import type { TaskParts } from './parts.ts'
import { draftFor, type Leg, legMs, linkTimeOf, type NotTaken, sendLeg, type SendOutcome, writeLeg } from './send.ts'
import { showAccepted } from './show.ts'
import { failureOf } from './state.ts'

/** A video that a client asks for, checked and allowed. */
export type VideoOrder = {
  readonly requestId: RequestId
  readonly accountId: string
  readonly keyId: string
  readonly caps: readonly SpendingCap[]
  readonly ask: VideoAsk
  readonly model: Model
  readonly webhookUrl?: string | undefined
  readonly receivedAt: number
  /** Joins the commit that records the task and stores the answer, in case this process dies before it is sent. */
  readonly remember?: ((tx: Tx, accepted: JsonObject) => Promise<void>) | undefined
  /** Joins the commit that withdraws a task no vendor took, so that the client's next try is served anew. */
  readonly forget?: ((tx: Tx) => Promise<void>) | undefined
}

export type Placed =
  | { readonly kind: 'placed'; readonly task: Task }
  | { readonly kind: 'no-funds'; readonly needed: Nano; readonly available: Nano; readonly cap?: SpendingCap }

// Time for the creator to connect, send and wait for a slow database. After that any node may take the task over.
const claimMarginMs = 60_000
// A hold outlives its task's deadline because the task's end ends it, and a late end must not count as an overdue hold.
const holdMarginMs = 60 * 60_000

/**
 * Record before send: the task and its hold are in the database before the vendor is called, and the vendor's id
 * follows in a second commit. Throws the error for the client where the vendor refuses the order; both are closed then.
 */
export async function createTask(parts: TaskParts, order: VideoOrder, orderer: Orderer): Promise<Placed> {
  const id = newOpaqueId('vid')
  const isServedBy = await serversOf(parts, order)
  const routes = routesFor(parts, order, isServedBy)
  const placing = { order, orderer, isServedBy, routes, linkTime: linkTimeOf(parts) }
  const first = await nextLeg(parts, placing, id)
  if ('why' in first) throw first.why
  orderer.recording()
  const recorded = await record(parts, order, newTask(parts, order, id, first))
  if (recorded.kind === 'no-funds') return recorded
  crashPoint('task-recorded')
  try {
    return { kind: 'placed', task: await sendSomewhere(parts, placing, recorded.task, first) }
  } catch (thrown) {
    parts.tally.failed(thrown)
    // A bug of ours says nothing about the vendor, and the task is on record: the poller looks for it at the vendor, so
    // the client must not order it again.
    const error = asGatewayError(thrown)
    throw error.kind === 'bug' ? forbidRetry(error) : error
  }
}

/** An order that is being placed, the client that waits for it, and the routes and the time for links that are left. */
type Placing = {
  readonly order: VideoOrder
  readonly orderer: Orderer
  readonly isServedBy: (channel: Channel) => boolean
  readonly routes: Iterator<Route>
  readonly linkTime: LinkTime
}

/** Sends the order to one route after another, as long as surely no vendor has taken it. */
async function sendSomewhere(parts: TaskParts, placing: Placing, recorded: Task, first: Leg): Promise<Task> {
  const { orderer } = placing
  const recordedAt = parts.clock.monotonic()
  let task = recorded
  let leg = first
  let allowedMs = 0
  for (let attempts = 1; ; attempts++) {
    allowedMs += legMs(parts, leg)
    // Where this process was suspended for long, its claim may have run out and another node may have the task.
    if (parts.clock.monotonic() - recordedAt > allowedMs) throw tooLate()
    orderer.sending(task)
    const outcome = await sendLeg(parts, leg)
    if (outcome.kind === 'created') return adopt(parts, task, outcome.upstreamId)
    logFailure(parts, task, outcome)
    if (outcome.kind === 'doubt') return keepInDoubt(parts, task)
    orderer.notTaken()
    const mayTryAgain = outcome.kind === 'unsent' || outcome.elsewhere
    const isLast = !mayTryAgain || attempts >= parts.attemptsMax
    const next = isLast ? undefined : await nextLeg(parts, placing, task.id)
    if (next === undefined || 'why' in next) throw await refuse(parts, placing, task, outcome)
    task = await reroute(parts, task, next, outcome)
    leg = next
  }
}

function statusOf(outcome: NotTaken): number {
  return outcome.kind === 'unsent' ? 0 : outcome.status
}

/** No vendor took the order: releases the hold and gives the client's error. A client with a task sees it fail. */
async function refuse(
  parts: TaskParts,
  { order, orderer }: Placing,
  task: Task,
  outcome: NotTaken,
): Promise<GatewayError> {
  const { error } = outcome
  const failure = failureOf(error)
  const end = { failure, status: recordedStatus(error), vendorStatus: statusOf(outcome), forget: order.forget }
  const undo = async () => {
    if (!orderer.hasTask) return withdraw(parts, task, end)
    await endTask(parts, task, { state: 'failed', failure, ofSending: true })
    return true
  }
  const isOurs = await parts.withDatabaseRetries(undo, 'goes on', { task: task.id })
  return isOurs ? error : tooLate()
}

type Withdrawal = Omit<Extract<TaskEnd, { state: 'refused' }>, 'state' | 'ofSending'>

/** Ends a creation that no vendor took. False where another node has sent the task in the meantime: then it goes on. */
async function withdraw(parts: TaskParts, task: Task, end: Withdrawal): Promise<boolean> {
  const { state } =
    (await endTask(parts, task, { state: 'refused', ofSending: true, ...end })) ?? (await rereadTask(parts, task))
  return state === 'refused'
}

async function reroute(parts: TaskParts, task: Task, leg: Leg, outcome: NotTaken): Promise<Task> {
  const { channel, upstreamModel } = leg.route
  const next = { attemptId: leg.ref, vendor: channel.vendor.id, channel: channel.id, upstreamModel }
  const failed = attemptOf(task, { status: statusOf(outcome), vendorCost: zeroNano, delivered: false })
  const move = () => rerouteTask(parts.store, task, { owner: parts.node, failed, next })
  const isOurs = await parts.withDatabaseRetries(move, 'ends', { task: task.id, attempt: task.attemptId })
  if (!isOurs) throw tooLate()
  parts.tally.attempted(failed)
  return { ...task, ...next, sentAt: parts.store.now() }
}

/** The node that has the task now finds out what became of it; sending it here too might buy the video twice. */
function tooLate(): GatewayError {
  return new GatewayError('overloaded', 'The request took too long.', { shouldRetry: false })
}

/** Tells the channels that may take an order: a draft can only be finished at the one that made it. */
async function serversOf(parts: TaskParts, { ask, model, accountId }: VideoOrder): Promise<Placing['isServedBy']> {
  const draft = ask.draftOf === undefined ? undefined : await draftFor(parts, accountId, ask, model.offers)
  return (channel) => channel.vendor.video !== undefined && (draft === undefined || isAtChannel(draft, channel))
}

/** The routes for an order, best first. */
function* routesFor(parts: TaskParts, { model }: VideoOrder, isServedBy: Placing['isServedBy']): Generator<Route> {
  for (const route of parts.channels().routes(model.offers)) if (isServedBy(route.channel)) yield route
}

/** The order, written for the next channel that can express it; or why there is none, as the best channel says it. */
async function nextLeg(
  parts: TaskParts,
  { order, orderer, isServedBy, routes, linkTime }: Placing,
  id: string,
): Promise<Leg | { readonly why: unknown }> {
  const { ask, accountId, model } = order
  const passedOver: PassedOver[] = []
  for (let next = routes.next(); next.done !== true; next = routes.next()) {
    const route = next.value
    try {
      const task = { id, accountId, attemptId: newAttemptId() }
      return await writeLeg(parts, route, { task, ask, linkTime, refused: orderer.refused })
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || thrown.kind !== 'bad-request') return { why: thrown }
      passedOver.push({ route, refusal: thrown })
    }
  }
  const unserved = { model: model.id, offers: model.offers, isServedBy }
  return { why: nobodyServes(parts.channels(), unserved, passedOver) }
}

function newTask(parts: TaskParts, order: VideoOrder, id: string, first: Leg): NewTask {
  const { route, ref } = first
  const { ask, model } = order
  const { kind, seconds, resolution, ratio, sound, hasInputVideo, seed, bound } = ask
  const now = parts.store.now()
  return {
    id,
    accountId: order.accountId,
    keyId: order.keyId,
    requestId: order.requestId,
    attemptId: ref,
    model: ask.model,
    vendor: route.channel.vendor.id,
    channel: route.channel.id,
    upstreamModel: route.upstreamModel,
    ask,
    facts: { kind, seconds, resolution, ratio, sound, hasInputVideo, ...(seed !== undefined && { seed }), bound },
    prices: writePriceList(model.prices),
    costs: writePriceList(model.costs),
    webhookUrl: order.webhookUrl ?? null,
    createdAt: now,
    deadline: now + ask.limits.deadlineSeconds * 1000,
    claim: { owner: parts.node, until: now + parts.attemptsMax * legMs(parts, first) + claimMarginMs },
  }
}

const fundsTries = 5
const fundsPauseMs = 100

/** Takes the hold and records the task. Where the balance is short, nodes are first asked for their unused leases. */
async function record(
  parts: TaskParts,
  order: VideoOrder,
  task: NewTask,
): Promise<{ kind: 'recorded'; task: Task } | Extract<Placed, { kind: 'no-funds' }>> {
  const needed = holdFor(order.ask.bound, order.model.prices)
  const reserved = await parts.reserve({ amount: needed, caps: order.caps, startedAt: order.receivedAt })
  if (reserved.kind === 'no-funds') return { ...reserved, needed }
  try {
    let isNoneLeased = false
    for (let tries = 1; ; tries++) {
      const taken = await take(parts, order, task, needed)
      if (taken.outcome === 'recorded') {
        reserved.heldByTask()
        return { kind: 'recorded', task: taken.task }
      }
      if (taken.outcome === 'no-account') throw accountDisabled()
      if (isNoneLeased || tries === fundsTries) return { kind: 'no-funds', needed, available: taken.available }
      // A lease that was given back since this try pays only for the next one.
      isNoneLeased = (await leasedOf(parts.store.db, task.accountId)) === zeroNano
      if (isNoneLeased) continue
      await parts.giveBackLeases(task.accountId)
      if (tries > 1) await pause(fundsPauseMs)
    }
  } finally {
    reserved.giveBack()
  }
}

async function take(parts: TaskParts, order: VideoOrder, task: NewTask, amount: Nano) {
  const { accountId, keyId, requestId, deadline } = task
  const { remember } = order
  const hold = {
    id: newId('hold'),
    accountId,
    keyId,
    kind: 'task',
    amount,
    priceVersion: order.model.prices.version,
    deadline: deadline + holdMarginMs,
    node: parts.node,
  } as const
  const request = {
    id: requestId,
    keyId,
    model: task.model,
    capability: 'video',
    status: 202,
    streamed: false,
    durationMs: Math.max(0, parts.clock.now() - order.receivedAt),
    createdAt: order.receivedAt,
  } as const
  let isWritten = false
  const also = async (tx: Tx) => {
    await remember?.(tx, showAccepted(task))
    isWritten = true
  }
  return recordTask(parts.store, { task, hold, request, also }).catch(async (thrown: unknown) => {
    // Until every row has been written, nothing can have been committed.
    if (isWritten) await abandon(parts, order, task)
    throw storeError(thrown)
  })
}

/**
 * The commit may have happened although its answer was lost. Nothing was sent to a vendor and nothing will be, so the
 * client may try again. Where that cannot be ensured, this throws an error that forbids a retry.
 */
async function abandon(parts: TaskParts, { forget }: VideoOrder, { id, accountId }: NewTask): Promise<void> {
  const failure = { code: 'overloaded', message: 'The database did not answer.' }
  const forsake = async () => {
    const task = await taskOnceRecorded(parts.store, { id, accountId })
    // `sends` as it was recorded: a node that has found and sent the task since has raised it, and the task goes on.
    return (
      task === undefined || withdraw(parts, { ...task, sends: 1 }, { failure, status: 503, vendorStatus: 0, forget })
    )
  }
  if (!(await parts.withDatabaseRetries(forsake, 'goes on', { task: id }))) throw tooLate()
}

function logFailure({ log }: TaskParts, task: Task, outcome: Exclude<SendOutcome, { kind: 'created' }>): void {
  const { error } = outcome
  if (error.kind === 'upstream-rejected') return
  const { cause } = error.details
  const fields = { task: task.id, attempt: task.attemptId, channel: task.channel, kind: error.kind }
  const why = cause instanceof Error ? cause.message : undefined
  log.warn({ ...fields, cause: why }, outcome.kind === 'doubt' ? 'a task is in doubt' : 'a task was not created')
}
