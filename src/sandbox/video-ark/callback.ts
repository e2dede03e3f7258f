import type { Callbacks } from '../video/callbacks.ts'
import type { VideoTask } from '../video/tasks.ts'
import type { SeedanceAsk } from './create.ts'
import { writeRecord } from './record.ts'

const triesAtEnd = 3

/** Posts the record at every change except a cancellation. Only the post of a final state is tried again. */
export function tellChange(task: VideoTask<SeedanceAsk>, callbacks: Callbacks): void {
  const { ask, state } = task
  const url = ask.settings.callbackUrl
  if (url === undefined || state === 'cancelled') return
  callbacks.post(task, url, writeRecord(task), state === 'succeeded' || state === 'failed' ? triesAtEnd : 1)
}
