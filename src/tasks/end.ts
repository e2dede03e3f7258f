import { crashPoint } from '../base/crash-points.ts'
import { GatewayError } from '../base/errors.ts'
import { newOpaqueId } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import { zeroNano, type Nano } from '../base/money.ts'
import { readPriceList } from '../billing/pinned.ts'
import { holdFor, priceOf } from '../billing/price.ts'
import { logExcess } from '../billing/record.ts'
import type { PriceList, Usage } from '../capabilities/usage.ts'
import { type Settled, settleHoldIn, type Voided, voidHoldIn } from '../store/ledger.ts'
import { addEventIn } from '../store/outbox.ts'
import { requestedAt, type AttemptRecord, type RequestRecord } from '../store/requests.ts'
import { json } from '../store/rows.ts'
import type { Tx } from '../store/schema.ts'
import { unclaimed, type TaskError, type TaskResult } from '../store/task-schema.ts'
import { changeTask, type Task } from '../store/tasks.ts'
import type { TaskParts } from './parts.ts'
import { statesBefore } from './state.ts'
import { writeEvent } from './webhooks/event.ts'

/** How a task ends. */
export type TaskEnd = {
  /** The vendor's own record, where it gave one. */
  readonly record?: JsonObject
  /** What the vendor counted. */
  readonly used?: Usage | undefined
} & (
  | { readonly state: 'succeeded'; readonly result: TaskResult }
  | { readonly state: 'cancelled' }
  | {
      readonly state: 'failed'
      readonly failure: TaskError
      /** Only this send is over: whoever found the task, or sent it again or elsewhere since, may have succeeded. */
      readonly ofSending?: true
      /** When to poll the task after its end: the vendor may still make and charge a video that comes too late. */
      readonly lookAgainAt?: number
    }
  | {
      readonly state: 'refused'
      readonly ofSending: true
      readonly failure: TaskError
      /** What the client was answered. */
      readonly status: number
      /** What the vendor answered; 0 where it was not reached. */
      readonly vendorStatus: number
      /** Joins the commit and drops the answer that was stored for the client's next try. */
      readonly forget?: ((tx: Tx) => Promise<void>) | undefined
    }
)

/**
 * The one way a task ends: its state, its money and its event change in one commit, which takes place only while the
 * task is open. Where several callers see the end at once, one gets the task and the others get undefined.
 */
export async function endTask(
  { store, log, wakeWebhooks, tally }: Pick<TaskParts, 'store' | 'log' | 'wakeWebhooks' | 'tally'>,
  task: Task,
  end: TaskEnd,
): Promise<Task | undefined> {
  const sale = end.state === 'succeeded' ? saleOf(task, end.used) : undefined
  if (sale?.basis === 'estimated') log.warn({ task: task.id, model: task.model }, 'a video without usable usage')
  const ended = await store.transaction(async (tx) => {
    const now = store.now()
    const from =
      'ofSending' in end
        ? { id: task.id, from: statesBefore('refused'), sends: task.sends, attemptId: task.attemptId }
        : { id: task.id, from: statesBefore(end.state) }
    const changed = await changeTask(tx, from, changeFor(end, sale?.usage, now))
    if (changed === undefined) return undefined
    const times = { now, requestedAt: await requestedAt(tx, changed.requestId) }
    const records = recordsOf(changed, end, sale, times)
    const booked = await book(tx, changed, { ...records, sale, note: `task ${end.state}` }, now)
    // The task was open, so its hold must have been too. Anything else is our bug and rolls this commit back.
    if (booked.outcome === 'already-ended') throw new GatewayError('bug', `hold ${task.holdId} is ${booked.state}`)
    if (end.state === 'refused') await end.forget?.(tx)
    else if (changed.webhookUrl !== null) {
      const { accountId, id: taskId, webhookUrl: url } = changed
      await addEventIn(tx, { id: newOpaqueId('evt'), accountId, taskId, url, payload: writeEvent(changed, now) }, now)
    }
    return { changed, records, booked }
  })
  if (ended === undefined) return undefined
  crashPoint('task-terminal')
  const { changed, records, booked } = ended
  if (changed.webhookUrl !== null) wakeWebhooks()
  const { request, attempts } = records
  const sold = sale && booked.outcome === 'settled' ? { charged: booked.charge, usage: sale.usage } : undefined
  tally.ended(request, { ...request, attempts }, sold)
  tally.taskEnded(task.model, end.state)
  if (booked.outcome === 'settled') logExcess(log, { task: task.id, model: task.model }, booked.excess)
  return changed
}

function changeFor(end: TaskEnd, usage: Usage | undefined, now: number) {
  return {
    state: end.state,
    in_doubt: false,
    ask: json(null),
    ...(end.record !== undefined && { record: json(end.record) }),
    ...(end.state === 'succeeded' && { result: json(end.result), usage: json(usage ?? null) }),
    ...('failure' in end && { failure: json(end.failure) }),
    updated_at: now,
    finished_at: now,
    next_poll_at: (end.state === 'failed' ? end.lookAgainAt : undefined) ?? null,
    ...unclaimed,
  }
}

type Records = { readonly request: RequestRecord; readonly attempts: readonly AttemptRecord[] }

/** Without a sale, `note` says why nothing is charged. */
type Booking = Records & { readonly sale: VideoSale | undefined; readonly note: string }

async function book(tx: Tx, task: Task, { sale, note, ...records }: Booking, now: number): Promise<Settled | Voided> {
  const hold = { id: task.holdId, accountId: task.accountId }
  if (sale === undefined) return voidHoldIn(tx, { hold, ...records, note }, now)
  const { price, usage, basis, excessTo } = sale
  return settleHoldIn(tx, { hold, price, basis, usage, ...records, ...(excessTo && { excessTo }) }, now)
}

type Times = { readonly now: number; readonly requestedAt: number }

/** The records of the request and of the attempt that made the video. */
function recordsOf(task: Task, end: TaskEnd, sale: VideoSale | undefined, times: Times): Records {
  const accepted = { status: 202, vendorStatus: 200 }
  const { status, vendorStatus } = end.state === 'refused' ? end : accepted
  const request = requestOf(task, status, times)
  if (sale !== undefined) {
    return { request, attempts: [attemptOf(task, { status: vendorStatus, vendorCost: sale.cost, delivered: true })] }
  }
  const vendorCost = end.used === undefined ? zeroNano : (costOf(task, end.used) ?? zeroNano)
  // Without a vendor's id no vendor is known to have taken the task, so its attempt is recorded as not reached.
  const reached = task.upstreamId === null && end.state !== 'refused' ? 0 : vendorStatus
  return { request, attempts: [attemptOf(task, { status: reached, vendorCost, delivered: false })] }
}

function requestOf(task: Task, status: number, { now, requestedAt: createdAt }: Times): RequestRecord {
  return {
    id: task.requestId,
    keyId: task.keyId,
    model: task.model,
    capability: 'video',
    status,
    streamed: false,
    durationMs: Math.max(0, now - task.createdAt),
    createdAt,
  }
}

export function attemptOf(
  task: Pick<Task, 'attemptId' | 'channel' | 'vendor' | 'upstreamModel' | 'sentAt'>,
  ended: Pick<AttemptRecord, 'status' | 'vendorCost' | 'delivered'>,
): AttemptRecord {
  const { attemptId: id, channel, vendor, upstreamModel, sentAt: createdAt } = task
  return { id, channel, vendor, upstreamModel, createdAt, ...ended }
}

type VideoSale = {
  readonly usage: Usage
  readonly price: Nano
  readonly cost: Nano
  readonly basis: 'vendor' | 'estimated'
  readonly excessTo?: 'suspense'
}

// A hold covers the most that a video can cost, so a count worth more than twice the hold is a miscount.
const miscountMax = 2n

/** The price of a video by its pinned price list: for the vendor's count or, where that is unusable, for the ask. */
function saleOf(task: Task, used: Usage | undefined): VideoSale {
  const prices = readPriceList(task.prices)
  const price = used === undefined ? undefined : priceIn(prices, used)
  const cost = used === undefined ? undefined : costOf(task, used)
  if (used !== undefined && price !== undefined && cost !== undefined) {
    const isMiscounted = price > miscountMax * holdFor(task.facts.bound, prices)
    return { usage: used, price, cost, basis: 'vendor', ...(isMiscounted && { excessTo: 'suspense' }) }
  }
  const usage = askedOf(task)
  const estimate = (list: PriceList) => priceIn(list, usage) ?? zeroNano
  return { usage, price: estimate(prices), cost: estimate(readPriceList(task.costs)), basis: 'estimated' }
}

/** The length that was asked for: the hold also covers what the client's input videos may add, which is not counted. */
function askedOf({ facts }: Task): Usage {
  const { video, videoToken } = facts.bound
  if (video === undefined) return videoToken === undefined ? {} : { videoToken }
  const seconds = Math.min(facts.seconds, video.seconds)
  const tokens = videoToken === undefined ? undefined : Math.ceil((videoToken * seconds) / Math.max(1, video.seconds))
  return { video: { ...video, seconds }, ...(tokens !== undefined && { videoToken: tokens }) }
}

/** What the vendor charges; undefined where our price list has no price for its count. */
export function costOf(task: Task, used: Usage): Nano | undefined {
  return priceIn(readPriceList(task.costs), used)
}

/** Undefined for an invalid count or a size without a price, because neither may keep a task from ending. */
function priceIn(list: PriceList, usage: Usage): Nano | undefined {
  try {
    const price = priceOf({ ...usage, request: 1 }, list)
    return price < 0n ? undefined : price
  } catch {
    return undefined
  }
}
