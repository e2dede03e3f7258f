import { seeded } from '../seeded.ts'
import { frameLink, videoLink } from '../video/results.ts'
import type { VideoTask } from '../video/tasks.ts'
import type { SeedanceAsk } from './create.ts'

/** What GET, the list and a callback report about a task. */
export function writeRecord(task: VideoTask<SeedanceAsk>): object {
  const { id, model, state, oddWord, failure, createdAt, changedAt, ask } = task
  const { settings, content } = ask
  const isMade = state === 'succeeded'
  return {
    id,
    model: model.model,
    status: oddWord ?? state,
    error: state === 'failed' && failure ? { code: failure.code, message: failure.message } : null,
    created_at: toSeconds(createdAt),
    updated_at: toSeconds(changedAt),
    ...(isMade && writeResult(task)),
    service_tier: settings.serviceTier,
    execution_expires_after: settings.expiresAfterSeconds,
    generate_audio: settings.generateAudio,
    draft: settings.isDraft,
    ...(content.draftId !== undefined && { draft_task_id: content.draftId }),
    priority: settings.priority,
  }
}

function writeResult(task: VideoTask<SeedanceAsk>): object {
  const { ask, steering } = task
  const { settings, frames, seconds, ratio } = ask
  const tokens = steering.has('zero') ? 0 : ask.tokens
  const link = steering.has('no-video') ? {} : { video_url: videoLink(task) }
  return {
    content: { ...link, ...(settings.returnLastFrame && { last_frame_url: frameLink(task) }) },
    ...(!steering.has('nousage') && { usage: { completion_tokens: tokens, total_tokens: tokens } }),
    seed: settings.seed === -1 ? Math.floor(seeded(task.seed)() * 100_000) : settings.seed,
    resolution: settings.resolution,
    ratio,
    // Reports whichever of the two was requested.
    ...(settings.frames === undefined ? { duration: seconds } : { frames }),
    framespersecond: 24,
  }
}

function toSeconds(ms: number): number {
  return Math.floor(ms / 1_000)
}
