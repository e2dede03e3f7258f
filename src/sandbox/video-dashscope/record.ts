import { videoLink } from '../video/results.ts'
import type { VideoState, VideoTask } from '../video/tasks.ts'
import type { WanAsk } from './create.ts'

const words = {
  queued: 'PENDING',
  running: 'RUNNING',
  succeeded: 'SUCCEEDED',
  failed: 'FAILED',
  cancelled: 'CANCELED',
  expired: 'FAILED',
} as const satisfies Record<VideoState, string>

export function statusOf({ state, oddWord }: VideoTask<WanAsk>): string {
  return oddWord ?? words[state]
}

/** What GET reports about a task: `output`, and `usage` once there is a video. */
export function writeRecord(task: VideoTask<WanAsk>): object {
  const { id, state, createdAt, startedAt, endedAt, failure, steering } = task
  const output = {
    task_id: id,
    task_status: statusOf(task),
    submit_time: writeTime(createdAt),
    ...(startedAt !== undefined && { scheduled_time: writeTime(startedAt) }),
    ...(endedAt !== undefined && { end_time: writeTime(endedAt) }),
  }
  switch (state) {
    case 'succeeded': {
      const usage = steering.has('nousage') ? {} : { usage: writeUsage(task) }
      return { output: { ...output, ...writePrompts(task), ...writeLink(task) }, ...usage }
    }
    case 'failed':
      return { output: { ...output, code: failure?.code, message: failure?.message } }
    case 'cancelled':
      return { output: { task_id: id, task_status: output.task_status } }
    case 'queued':
    case 'running':
    case 'expired':
      return { output }
  }
}

function writeLink(task: VideoTask<WanAsk>): object {
  return task.steering.has('no-video') ? {} : { video_url: videoLink(task) }
}

/** Only 2.5 shows the extended prompt. */
function writePrompts({ ask }: VideoTask<WanAsk>): object {
  const { prompt, isExtended, family } = ask
  const isShown = family.version === '2.5' && isExtended
  return { orig_prompt: prompt, ...(isShown && { actual_prompt: `${prompt} Cinematic light, fine detail.` }) }
}

function writeUsage({ ask, steering }: VideoTask<WanAsk>): object {
  const { family, wish, outputSeconds: output, inputSeconds: input } = ask
  const { frame } = wish
  const zero = steering.has('zero')
  const size = `${frame.width}*${frame.height}`
  const count = { video_count: zero ? 0 : 1 }
  if (family.version === '2.5') return { video_duration: zero ? 0 : output, video_ratio: size, ...count }
  const seconds = {
    duration: zero ? 0 : Number((input + output).toFixed(2)),
    input_video_duration: zero ? 0 : input,
    output_video_duration: zero ? 0 : output,
    ...count,
    SR: frame.tier,
  }
  if (family.version === '2.7') return { ...seconds, ratio: frame.ratio }
  if (family.version === '3.0') return { ...seconds, ratio: frame.ratio, fps: 30 }
  return family.kind === 'i2v' ? { ...seconds, audio: wish.sound } : { ...seconds, size }
}

const zoneMs = 8 * 60 * 60 * 1_000

/** The vendor's times are in UTC+8 without saying so. */
function writeTime(ms: number): string {
  return new Date(ms + zoneMs).toISOString().replace('T', ' ').replace('Z', '')
}

/** Reads `YYYYMMDDhhmmss` in the vendor's time zone. */
export function readTime(text: string): number | undefined {
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(text) ?? []
  if (year === undefined) return undefined
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return Number.isNaN(at) ? undefined : at - zoneMs
}
