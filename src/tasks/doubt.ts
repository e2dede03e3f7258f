import { GatewayError, unreachable } from '../base/errors.ts'
import { isUnavailable } from '../store/faults.ts'
import { unclaimed, type TaskError } from '../store/task-schema.ts'
import { knownUpstreamIds } from '../store/task-lists.ts'
import { changeTask, type Task, type TaskChange } from '../store/tasks.ts'
import type { SoughtTask } from '../vendors/vendor.ts'
import { clockSkewMs } from '../vendors/video-news.ts'
import { adopt, keepInDoubt, paceAt } from './adopt.ts'
import {
  ask,
  contextOf,
  isLeftToOthers,
  type TaskRoute,
  taskRouteOf,
  isAboutUs,
  judgeQuestion,
  resendRoute,
} from './calls.ts'
import { endTask } from './end.ts'
import { jittered, retryWait } from './pace.ts'
import type { TaskParts } from './parts.ts'
import { type Leg, legMs, linkTimeOf, sendLeg, writeLeg } from './send.ts'
import { failureOf, notTakenByVendor, type PollOutcome, timedOut } from './state.ts'

/**
 * A task is sent again only where the vendor surely did not receive the send before. A send is counted before it is
 * made, so a node that dies in between uses one up; a few such deaths in a row must not cost the customer the video.
 */
const sendsMax = 5
// How many times in a row a vendor must say that it has no such task: its own write may not have spread everywhere yet.
const absencesMin = 2
// The longest wait before a list that could not tell is read again: it may tell once the other tasks in it have ended.
const unsureMsMax = 10 * 60_000

/**
 * Handles a recorded task whose vendor id is unknown, because its creation was cut off or the process that made it
 * died. The vendor is asked for it by our reference: a task that is found is adopted, one that is surely absent is sent
 * again, and where the vendor cannot tell, the task stays in doubt and fails at its deadline. It is never sent again
 * unchecked, because that could buy the video twice.
 */
export async function resolveDoubt(parts: TaskParts, task: Task): Promise<PollOutcome> {
  const pace = paceAt(parts, task)
  const isLate = parts.store.now() >= task.deadline && !isLeftToOthers(parts, task)
  const wait = (ms: number, change: TaskChange = {}) =>
    isLate ? fail(parts, task, timedOut) : lookAgain(parts, task, ms, change)
  const retry = () => wait(retryWait(pace, task.failures, parts.random), { failures: task.failures + 1 })
  // A call that was cut off may still be in progress at the vendor.
  const settledAt = task.sentAt + pace.doubtMs
  if (parts.store.now() < settledAt) return wait(settledAt - parts.store.now())
  const taskRoute = taskRouteOf(parts, task)
  if (taskRoute === undefined) return retry()
  const found = await find(parts, taskRoute, task)
  if (found === 'failed') return retry()
  if (found === 'unsure') {
    parts.log.warn({ task: task.id, channel: task.channel }, 'it is not known whether the vendor has this task')
    return wait(Math.min(unsureMsMax, pace.doubtMs * 2 ** Math.min(task.polls, 10)), { failures: 0 })
  }
  if (found !== 'absent') {
    await adopt(parts, task, found.upstreamId)
    return 'open'
  }
  const lost = task.lost + 1
  if (isLate || lost < absencesMin) return wait(pace.doubtMs, { lost, failures: 0 })
  if (task.sends < sendsMax) return sendAgain(parts, taskRoute, task)
  return fail(parts, task, notTakenByVendor)
}

type Found = { readonly upstreamId: string } | 'absent' | 'unsure' | 'failed'

async function find(parts: TaskParts, taskRoute: TaskRoute, task: Task): Promise<Found> {
  const asked = await askWhether(parts, taskRoute, task, 0)
  // A list goes by its vendor's clock. Where that clock is far from ours, a task that is absent around our sending time
  // may be listed around that time by the vendor's clock, so the list is read again with that offset.
  if (asked.found !== 'absent' || Math.abs(asked.aheadMs) < clockSkewMs / 2) return asked.found
  return (await askWhether(parts, taskRoute, task, asked.aheadMs)).found
}

type AskedWhether = {
  readonly found: Found
  /** How far the vendor's clock is ahead of ours, by its `date` header; 0 where it sent none. */
  readonly aheadMs: number
}

async function askWhether(parts: TaskParts, taskRoute: TaskRoute, task: Task, aheadMs: number): Promise<AskedWhether> {
  const { adapter } = taskRoute
  const failed = { found: 'failed', aheadMs: 0 } as const
  if (adapter.find === undefined) return { found: 'unsure', aheadMs: 0 }
  const { channel, attemptId: ref, upstreamModel, sentAt, facts } = task
  // Twice the skew, because the vendor's date and the sending node's `sentAt` may each be too early by that much.
  const sentSince = sentAt - Math.abs(aheadMs) - 2 * clockSkewMs
  const knownIds = await knownUpstreamIds(parts.store.db, { channel, sentSince })
  // The span covers both clocks, because ours may have been set since.
  const [earliest, latest] = [sentAt + Math.min(0, aheadMs), sentAt + Math.max(0, aheadMs)]
  const sought: SoughtTask = { ref, upstreamModel, kind: facts.kind, sentAt: earliest, sentUntil: latest, knownIds }
  const call = adapter.find.call(sought, contextOf(parts, taskRoute, task))
  const answered = await ask(parts, taskRoute, call, task)
  if (answered.kind === 'failed') return failed
  if (isAboutUs(answered)) {
    judgeQuestion(parts, taskRoute, answered)
    return failed
  }
  const saidMs = Date.parse(answered.header('date') ?? '') - parts.store.now()
  try {
    const found = adapter.find.read(answered, sought)
    // One task of the vendor must never be adopted as two of ours.
    const isAnothers = typeof found === 'object' && knownIds.has(found.upstreamId)
    return { found: isAnothers ? 'unsure' : found, aheadMs: Number.isNaN(saidMs) ? 0 : saidMs }
  } catch (thrown) {
    parts.log.warn({ task: task.id, channel, cause: String(thrown) }, 'a list of tasks could not be read')
    return failed
  }
}

/** Sends a task that the vendor surely never got. */
async function sendAgain(parts: TaskParts, taskRoute: TaskRoute, task: Task): Promise<PollOutcome> {
  if (task.ask === null) throw new GatewayError('bug', `task ${task.id} cannot be sent again`)
  const putOff = (of: Task, change: TaskChange = {}) => {
    const ms = retryWait(paceAt(parts, task), task.failures, parts.random)
    return lookAgain(parts, of, ms, { ...change, failures: task.failures + 1 })
  }
  const route = resendRoute(parts, taskRoute, task)
  // Every credential of the channel rests for this model: the vendor would refuse the order.
  if (route === undefined) return putOff(task)
  let leg: Leg
  try {
    leg = await writeLeg(parts, route, { task, ask: task.ask, linkTime: linkTimeOf(parts), refused: parts.stopping })
  } catch (thrown) {
    // A fetch that our own stop cut off says nothing against the order.
    if (parts.stopping.aborted) return lookAgain(parts, task, 0, {})
    // Nor does a database that did not answer: the poller looks again once it does. A client's link that cannot be
    // reached is a `GatewayError`, and fails the task.
    if (!(thrown instanceof GatewayError) && isUnavailable(thrown)) throw thrown
    return fail(parts, task, failureOf(thrown))
  }
  const resent = await recordSend(parts, task, leg)
  if (resent === undefined) return 'open'
  parts.log.warn({ task: task.id, channel: task.channel }, 'a task that never reached its vendor is sent again')
  const outcome = await sendLeg(parts, leg)
  if (outcome.kind === 'refused' && !outcome.later) return fail(parts, resent, failureOf(outcome.error))
  switch (outcome.kind) {
    case 'created':
      await adopt(parts, resent, outcome.upstreamId)
      return 'open'
    case 'doubt':
      await keepInDoubt(parts, resent)
      return 'open'
    case 'refused':
    case 'unsent':
      // The order never left the gateway, or the vendor cannot take it now. Nothing was made: the send does not count.
      return putOff(resent, { sends: task.sends, lost: absencesMin - 1 })
    default:
      return unreachable(outcome)
  }
}

/** Records a send before it is made. Undefined where the task is no longer this node's to send. */
async function recordSend({ store, node, timeouts }: TaskParts, task: Task, leg: Leg): Promise<Task | undefined> {
  const now = store.now()
  // While a process is suspended its claim may run out and be taken again under the same node name. The owner alone is
  // no proof then, so `sends` and the attempt are compared too: every send here raises the one, and the creator's send
  // to its next channel changes the other.
  return changeTask(
    store.db,
    { id: task.id, from: ['creating'], owner: node, sends: task.sends, attemptId: task.attemptId },
    { sends: task.sends + 1, sent_at: now, lost: 0, claim_until: now + legMs({ timeouts }, leg) * 2 },
  )
}

async function fail(parts: TaskParts, task: Task, failure: TaskError): Promise<PollOutcome> {
  const ended = await endTask(parts, task, { state: 'failed', failure, ofSending: true })
  return ended === undefined ? 'open' : 'over'
}

async function lookAgain(parts: TaskParts, task: Task, ms: number, change: TaskChange): Promise<PollOutcome> {
  const { store, random, node } = parts
  const now = store.now()
  const next = now + jittered(ms, random)
  await changeTask(
    store.db,
    { id: task.id, from: ['creating'], owner: node, attemptId: task.attemptId },
    {
      ...change,
      in_doubt: true,
      polls: task.polls + 1,
      next_poll_at: now < task.deadline ? Math.min(next, task.deadline) : next,
      ...unclaimed,
    },
  )
  return 'open'
}
