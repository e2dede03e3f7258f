import { videoLink } from '../video/results.ts'
import type { VideoState, VideoTask } from '../video/tasks.ts'
import type { PixverseAsk } from './create.ts'
import { writeAnswer } from './errors.ts'

/** Queued and running tasks share one number. */
const numbers = {
  queued: 5,
  running: 5,
  succeeded: 1,
  failed: 8,
  cancelled: 6,
  expired: 8,
} as const satisfies Record<VideoState, number>

const moderated = 7
const moderationCodes: ReadonlySet<string> = new Set(['500054', '500063'])

/** The answer to a poll. It gives no reason for a failure, except for moderation. */
export function writeRecord(task: VideoTask<PixverseAsk>): object {
  const { id, state, oddWord, failure, ask, clip, seed, createdAt, changedAt, steering } = task
  const isModerated = state === 'failed' && moderationCodes.has(failure?.code ?? '')
  const isMade = state === 'succeeded' && !steering.has('no-video')
  return writeAnswer({
    id: Number(id),
    status: oddWord ?? (isModerated ? moderated : numbers[state]),
    prompt: ask.prompt,
    negative_prompt: ask.negativePrompt,
    // The vendor chooses a seed if none was given.
    seed: ask.seed === 0 ? (seed % 2_147_483_647) + 1 : ask.seed,
    url: isMade ? videoLink(task) : '',
    outputWidth: isMade ? clip.width : 0,
    outputHeight: isMade ? clip.height : 0,
    create_time: new Date(createdAt).toISOString(),
    modify_time: new Date(changedAt).toISOString(),
  })
}
