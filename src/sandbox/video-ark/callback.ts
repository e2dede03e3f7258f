import type { Callbacks } from '../video/callbacks.ts'
import type { VideoTask } from '../video/tasks.ts'
import type { SeedanceAsk } from './create.ts'
import { writeRecord } from './record.ts'

const triesAtEnd = 3

/** Posts the record at every change except a cancellation. Only the post of a final state is tried again. */
export function tellChange(task: VideoTask<SeedanceAsk>, callbacks: Callbacks): void {
  const { ask, state, steering } = task
  const url = ask.settings.callbackUrl
  if (url === undefined || state === 'cancelled' || steering.has('no-callback')) return
  const tries = state === 'succeeded' || state === 'failed' ? triesAtEnd : 1
  callbacks.post(task, url, writeRecord(task), { tries, copies: steering.has('double-callback') ? 2 : 1 })
}
