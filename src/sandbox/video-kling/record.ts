import { framesPerSecond } from '../video/mp4.ts'
import { videoLink } from '../video/results.ts'
import type { VideoState, VideoTask } from '../video/tasks.ts'
import type { KlingAsk } from './create.ts'

const words = {
  queued: 'submitted',
  running: 'processing',
  succeeded: 'succeed',
  failed: 'failed',
  cancelled: 'failed',
  expired: 'failed',
} as const satisfies Record<VideoState, string>

/** What an answer, a list and a callback report about a task. */
export function writeData(task: VideoTask<KlingAsk>): object {
  const { id, state, oddWord, createdAt, changedAt, failure, ask } = task
  return {
    task_id: id,
    task_status: oddWord ?? words[state],
    ...(state === 'failed' && { task_status_msg: failure?.message ?? '' }),
    task_info: { external_task_id: ask.externalId },
    created_at: createdAt,
    updated_at: changedAt,
    ...(state === 'succeeded' && writeResult(task)),
  }
}

function writeResult(task: VideoTask<KlingAsk>): object {
  const { id, clip, steering } = task
  const video = { id: `v${id}`, url: videoLink(task), duration: (clip.frames / framesPerSecond).toFixed(1) }
  return {
    task_result: { videos: steering.has('no-video') ? [] : [video] },
    ...(!steering.has('nousage') && { final_unit_deduction: writeUnits(task) }),
  }
}

/** Two units for five standard seconds, three and a half for professional ones, and twice that with sound. */
function writeUnits({ ask: { mode, seconds, sound }, steering }: VideoTask<KlingAsk>): string {
  if (steering.has('zero')) return '0'
  return String(((mode === 'pro' ? 3.5 : 2) * seconds * (sound ? 2 : 1)) / 5)
}
