import { frameLink, videoLink } from '../video/results.ts'
import type { VideoState, VideoTask } from '../video/tasks.ts'
import type { ViduAsk } from './create.ts'

const words = {
  queued: 'queueing',
  running: 'processing',
  succeeded: 'success',
  failed: 'failed',
  cancelled: 'failed',
  expired: 'failed',
} as const satisfies Record<VideoState, string>

/** What an answer and a callback report about a task. */
export function writeTask(task: VideoTask<ViduAsk>): object {
  const { id, state, oddWord, failure, ask, steering } = task
  return {
    id,
    state: oddWord ?? words[state],
    err_code: state === 'failed' ? (failure?.code ?? '') : '',
    ...(!steering.has('nousage') && { credits: ask.credits }),
    payload: ask.wish.payload,
    creations: state === 'succeeded' && !steering.has('no-video') ? [writeVideo(task)] : [],
  }
}

function writeVideo(task: VideoTask<ViduAsk>): object {
  return { id: `c${task.id}`, url: videoLink(task), cover_url: frameLink(task) }
}
