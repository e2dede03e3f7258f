import type { VideoState, VideoTask } from '../video/tasks.ts'
import type { SoraAsk } from './create.ts'

const words = {
  queued: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'failed',
  expired: 'failed',
} as const satisfies Record<VideoState, string>

const progress: Readonly<Partial<Record<VideoState, number>>> = { running: 50, succeeded: 100 }

/** How long the video can be downloaded. */
const fetchedMs = 24 * 60 * 60 * 1_000

/** A video as creation and GET report it. The record holds no link to the video. */
export function writeTask(task: VideoTask<SoraAsk>): object {
  const { id, model, state, oddWord, createdAt, endedAt, failure, steering, ask } = task
  const isMade = state === 'succeeded' && endedAt !== undefined
  return {
    id,
    object: 'video',
    model: model.model,
    status: oddWord ?? words[state],
    progress: progress[state] ?? 0,
    created_at: unixSeconds(createdAt),
    completed_at: isMade ? unixSeconds(endedAt) : null,
    expires_at: isMade ? unixSeconds(expiresAt(task)) : null,
    ...(!steering.has('nousage') && { seconds: String(ask.seconds) }),
    size: ask.size,
    prompt: ask.prompt,
    remixed_from_video_id: null,
    error: state === 'failed' ? { code: failure?.code ?? '', message: failure?.message ?? '' } : null,
  }
}

/** The time in milliseconds until which the finished video can be downloaded. */
export function expiresAt({ endedAt = 0, steering }: VideoTask<SoraAsk>): number {
  return steering.has('expired') ? endedAt : endedAt + fetchedMs
}

function unixSeconds(ms: number): number {
  return Math.floor(ms / 1_000)
}
