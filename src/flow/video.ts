import type { Clock } from '../base/clock.ts'
import { asGatewayError, forbidRetry } from '../base/errors.ts'
import { abortSignalOf } from '../base/http/client-signal.ts'
import type { JsonObject } from '../base/json.ts'
import { type Nano, zeroNano } from '../base/money.ts'
import type { ReceivedRequest } from '../capabilities/ask.ts'
import type { ModelTraits } from '../capabilities/limits.ts'
import type { VideoRequest } from '../capabilities/video.ts'
import type { ModelsOnOffer } from '../catalogue/model.ts'
import type { IdempotencyRecord } from '../idempotency/record.ts'
import { isUnavailable, storeError } from '../store/faults.ts'
import type { Store } from '../store/open.ts'
import type { Tx } from '../store/schema.ts'
import type { Task } from '../store/tasks.ts'
import { requestById } from '../store/request-lists.ts'
import { showAccepted, showTask } from '../tasks/show.ts'
import { isOver } from '../tasks/state.ts'
import type { Tasks } from '../tasks/tasks.ts'
import { noFunds } from './admit.ts'
import { json } from './content-types.ts'
import type { Ordered } from './order.ts'
import { readAsked } from './read-asked.ts'
import type { WholeAnswer } from './stages.ts'

export type VideoParts = {
  readonly tasks: Tasks
  readonly store: Store
  readonly clock: Clock
  readonly models: () => ModelsOnOffer
  /** Reads a video request in the client's protocol. */
  readonly readAsk: (asked: ReceivedRequest, lookUp: (model: string) => ModelTraits) => VideoRequest
  /** Throws for a URL to which no webhook would be delivered. */
  readonly checkWebhook: (url: string, signal: AbortSignal) => Promise<void>
}

/** Orders a video: 202 with the task, or 200 with its record where the client waits and it ends in time. */
export async function placeVideo(
  parts: VideoParts,
  ordered: Ordered,
  query: NonNullable<ReceivedRequest['query']>,
  remembered: IdempotencyRecord | undefined,
): Promise<WholeAnswer> {
  const { principal, requestId, receivedAt } = ordered
  const signal = abortSignalOf(ordered.signal)
  const among = { models: parts.models, capability: 'video' } as const
  const { read: request, model } = readAsked(await ordered.readBody(), ordered, among, (asked, lookUp) => {
    return parts.readAsk({ ...asked, query }, lookUp)
  })
  const { webhookUrl, wait, timeoutSeconds, ...ask } = request
  if (webhookUrl !== undefined) await parts.checkWebhook(webhookUrl, signal)
  const { accountId, keyId, caps } = principal
  const once = remembered && {
    remember: (tx: Tx, accepted: JsonObject) => remembered.keepIn(tx, 202, JSON.stringify(accepted)),
    forget: (tx: Tx) => remembered.freeIn(tx),
  }
  ordered.markVendorCalled()
  const placed = await parts.tasks
    .create({ requestId, accountId, keyId, caps, ask, model, webhookUrl, receivedAt, ...once })
    .catch((thrown: unknown) => {
      throw storeError(thrown)
    })
  if (placed.kind === 'no-funds') throw noFunds(placed.needed, placed, ask, model)
  try {
    return await answerFor(parts, placed.task, wait ? { ms: timeoutSeconds * 1000, signal } : undefined)
  } catch (thrown) {
    throw forbidRetry(asGatewayError(thrown)) // the task exists: a client that tried again would order a second one
  }
}

/** The answer to the client: at once or, if it waits, when the task is over or the time for waiting is. */
async function answerFor(
  parts: VideoParts,
  placed: Task,
  wait: { readonly ms: number; readonly signal: AbortSignal } | undefined,
): Promise<WholeAnswer> {
  const task = wait ? await parts.tasks.wait(placed, wait.ms, wait.signal) : placed
  const cost = wait && isOver(task.state) ? await costOf(parts, task) : undefined
  if (cost === undefined) return whole(202, showAccepted(task), zeroNano)
  return whole(200, showTask(task, parts.clock.now()), cost)
}

/**
 * The cost by the request's record; a task that failed costs nothing. Undefined while the database is unavailable: then
 * the client is told that the task was accepted, so that it does not order again.
 */
async function costOf({ store }: VideoParts, { accountId, requestId }: Task): Promise<Nano | undefined> {
  try {
    const found = await requestById(store.db, { scope: { accountId }, id: requestId })
    return found?.request.cost ?? zeroNano
  } catch (thrown) {
    if (isUnavailable(thrown)) return undefined
    throw thrown
  }
}

function whole(status: number, body: JsonObject, cost: Nano): WholeAnswer {
  const bytes = new TextEncoder().encode(JSON.stringify(body))
  return { kind: 'whole', status, body: bytes, contentType: json, cost }
}
