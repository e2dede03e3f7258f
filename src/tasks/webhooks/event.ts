import { unixSeconds } from '../../base/moment.ts'
import type { Task } from '../../store/tasks.ts'
import { showTask } from '../show.ts'
import { shownState } from '../state.ts'

type EventType = 'video.generation.succeeded' | 'video.generation.failed' | 'video.generation.cancelled'

/** The body of a webhook: the record that GET gives at this moment. */
export function writeEvent(task: Task, now: number): string {
  const state = shownState(task.state)
  if (state === 'submitted' || state === 'running') throw new Error(`task ${task.id} is not over`)
  const type: EventType = `video.generation.${state}`
  return JSON.stringify({ type, created_at: unixSeconds(now), data: showTask(task, now) })
}
