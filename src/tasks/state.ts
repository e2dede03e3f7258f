import { unreachable } from '../base/errors.ts'
import type { TaskState, VideoNews } from '../capabilities/video.ts'
import type { StoredTaskState, TaskError } from '../store/task-schema.ts'

/**
 * The one-way street of a task:
 *
 *     creating → submitted → running → succeeded | failed | cancelled
 *     creating → refused
 *
 * A step may be left out and none is taken back. What is terminal never changes, whoever says what how late: every change
 * is a compare-and-set on the states that stand before the new one.
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

/** From where a task may come to this state. */
export function before(state: StoredTaskState): readonly StoredTaskState[] {
  if (state === 'refused') return ['creating']
  return states.filter((earlier) => ranks[earlier] < ranks[state])
}

export function isOver(state: StoredTaskState): boolean {
  return ranks[state] === 3
}

/** Refused creations were answered as such: they are no tasks to whoever made them. */
export const listedStates = states.filter((state) => state !== 'refused')

/** As clients see it. What nobody knows of yet, or is in doubt, was submitted as far as they are concerned. */
export function shownState(state: StoredTaskState): TaskState {
  if (state === 'creating') return 'submitted'
  return state === 'refused' ? 'failed' : state
}

/** The stored states that clients see as this one, of those that are listed. */
export function statesShownAs(shown: TaskState): readonly StoredTaskState[] {
  return shown === 'submitted' ? ['creating', 'submitted'] : [shown]
}

/** What a look at a task came to, for whoever waits for its end. */
export type Looked = 'open' | 'over'

/** Times in a row that a vendor may not know a task it took: what it just wrote may not be everywhere yet. */
const lostMax = 3

export type Decision =
  /** `lost`: how often in a row the vendor has not known it. */
  | { readonly kind: 'stay'; readonly lost: number }
  | { readonly kind: 'run' }
  | { readonly kind: 'end'; readonly state: 'succeeded' | 'cancelled' }
  | { readonly kind: 'end'; readonly state: 'failed'; readonly failure: TaskError }

/** What the vendor's news mean for a task. A word that nobody knows keeps the state, and must never end a task. */
export function decide(
  task: { readonly state: StoredTaskState; readonly lost: number },
  news: Pick<VideoNews, 'state' | 'result' | 'error'>,
): Decision {
  switch (news.state) {
    case 'submitted':
    case 'unknown-word':
      return { kind: 'stay', lost: 0 }
    case 'running':
      return before('running').includes(task.state) ? { kind: 'run' } : { kind: 'stay', lost: 0 }
    case 'succeeded':
      return isUsable(news.result?.videoUrl) ? { kind: 'end', state: 'succeeded' } : failed(noOutput)
    case 'failed':
      return failed(news.error ?? { code: 'upstream_failed', message: 'The vendor could not make the video.' })
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

function isUsable(url: string | undefined): boolean {
  return url !== undefined && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
}

export const noOutput: TaskError = { code: 'upstream_no_output', message: 'The vendor gave no video.' }
export const timedOut: TaskError = { code: 'timeout', message: 'The video was not made in time.' }
export const lostByVendor: TaskError = { code: 'upstream_task_lost', message: 'The vendor has lost the task.' }
