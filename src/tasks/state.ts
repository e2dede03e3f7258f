import { GatewayError, unreachable } from '../base/errors.ts'
import { isHttpUrl } from '../base/http-url.ts'
import type { TaskState, VideoNews } from '../capabilities/video.ts'
import type { StoredTaskState, TaskError } from '../store/task-schema.ts'

/**
 * The one-way street of a task:
 *
 *     creating → submitted → running → succeeded | failed | cancelled
 *     creating → refused
 *
 * A task may skip a state and never goes back to an earlier one. A terminal state never changes, however late further
 * news arrives, because every change is a compare-and-set on the states that precede the new one.
 */
const ranks = {
  creating: 0,
  submitted: 1,
  running: 2,
  succeeded: 3,
  failed: 3,
  cancelled: 3,
  refused: 3,
} as const satisfies Record<StoredTaskState, number>

const states = Object.keys(ranks) as StoredTaskState[]

export const openStates = states.filter((state) => !isOver(state))

/** The states from which a task may move to this one. */
export function statesBefore(state: StoredTaskState): readonly StoredTaskState[] {
  if (state === 'refused') return ['creating']
  return states.filter((earlier) => ranks[earlier] < ranks[state])
}

export function isOver(state: StoredTaskState): boolean {
  return ranks[state] === 3
}

/** A refused creation was answered with an error, so its customer never sees it as a task. */
export const listedStates = states.filter((state) => state !== 'refused')

/** The state as clients see it: a task that is being created, or whose creation is in doubt, shows as `submitted`. */
export function shownState(state: StoredTaskState): TaskState {
  if (state === 'creating') return 'submitted'
  return state === 'refused' ? 'failed' : state
}

/** The listed states that clients see as this one. */
export function statesShownAs(shown: TaskState): readonly StoredTaskState[] {
  return shown === 'submitted' ? ['creating', 'submitted'] : [shown]
}

/** Whether a task is over after a poll; the requests that wait for its end are woken when it is. */
export type PollOutcome = 'open' | 'over'

/** How many times in a row a vendor may not know a task it accepted: its write may not have spread everywhere yet. */
const lostMax = 3

export type Decision =
  /** `lost`: how many times in a row the vendor has not known the task. */
  | { readonly kind: 'stay'; readonly lost: number }
  | { readonly kind: 'run' }
  | { readonly kind: 'end'; readonly state: 'succeeded' | 'cancelled' }
  | { readonly kind: 'end'; readonly state: 'failed'; readonly failure: TaskError }

/** What the vendor's news means for a task. An unknown word keeps the state, because it must never end a task. */
export function decide(
  task: { readonly state: StoredTaskState; readonly lost: number },
  news: Pick<VideoNews, 'state' | 'result' | 'error'>,
): Decision {
  switch (news.state) {
    case 'submitted':
    case 'unknown-word':
      return { kind: 'stay', lost: 0 }
    case 'running':
      return statesBefore('running').includes(task.state) ? { kind: 'run' } : { kind: 'stay', lost: 0 }
    case 'succeeded':
      return isHttpUrl(news.result?.videoUrl ?? '') ? { kind: 'end', state: 'succeeded' } : failed(noOutput)
    case 'failed':
      // Clients show the message, so a vendor that gives none does not leave it empty.
      return failed({ code: news.error?.code ?? notMade.code, message: news.error?.message || notMade.message })
    case 'cancelled':
      return { kind: 'end', state: 'cancelled' }
    case 'expired':
      return failed(timedOut)
    case 'lost':
      return task.lost < lostMax ? { kind: 'stay', lost: task.lost + 1 } : failed(lostByVendor)
    default:
      return unreachable(news.state)
  }
}

function failed(failure: TaskError): Decision {
  return { kind: 'end', state: 'failed', failure }
}

const notMade: TaskError = { code: 'upstream_failed', message: 'The vendor could not make the video.' }
export const notTakenByVendor: TaskError = { code: 'upstream_failed', message: 'The vendor did not take the task.' }
export const noOutput: TaskError = { code: 'upstream_no_output', message: 'The vendor gave no video.' }
export const timedOut: TaskError = { code: 'timeout', message: 'The video was not made in time.' }
export const lostByVendor: TaskError = { code: 'upstream_task_lost', message: 'The vendor has lost the task.' }

/** Why an order came to nothing, as its task shows it. */
export function failureOf(thrown: unknown): TaskError {
  if (!(thrown instanceof GatewayError)) return notTakenByVendor
  return { code: thrown.details.code ?? 'upstream_refused', message: thrown.message }
}
