import { videoLink } from '../video/results.ts'
import type { VideoState, VideoTask } from '../video/tasks.ts'
import type { MinimaxAsk } from './create.ts'
import { writeBase } from './errors.ts'

const words = {
  queued: 'Queueing',
  running: 'Processing',
  succeeded: 'Success',
  failed: 'Fail',
  cancelled: 'Fail',
  expired: 'Fail',
} as const satisfies Record<VideoState, string>

/** The answer to a poll. The reason for a failure is in the same place as errors. */
export function writeRecord(task: VideoTask<MinimaxAsk>): object {
  const { id, state, oddWord, polls, failure, steering } = task
  const isFirst = state === 'queued' && polls <= 1
  const hasFile = state === 'succeeded' && !steering.has('no-video')
  return {
    task_id: id,
    status: oddWord ?? (isFirst ? 'Preparing' : words[state]),
    file_id: hasFile ? fileIdOf(id) : '',
    ...(state === 'failed' && failure ? writeBase(Number(failure.code), failure.message) : writeBase()),
  }
}

export function writeFile(task: VideoTask<MinimaxAsk>): object {
  return { file: { file_id: fileIdOf(task.id), download_url: videoLink(task) }, ...writeBase() }
}

const fileMark = '7'

function fileIdOf(taskId: string): string {
  return `${fileMark}${taskId}`
}

/** The task that a file belongs to; an empty id for anything that is not a file's id. */
export function taskIdOf(fileId: string): string {
  return fileId.startsWith(fileMark) ? fileId.slice(fileMark.length) : ''
}
