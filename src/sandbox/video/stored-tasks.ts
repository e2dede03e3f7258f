import { type Fields, isFields, textIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { readSteering } from '../steering.ts'
import type { TaskFamily, VideoState, VideoTask, Writable } from './tasks.ts'

type Task<Ask> = Writable<VideoTask<Ask>>

/** A task as it is stored, without anything that the customer wrote. */
type StoredTask<Ask> = Omit<Task<Ask>, 'steering' | 'origin' | 'model'> & {
  readonly words: string
  readonly origin?: string
  /** Serialised separately, because its prices are bigints, which JSON does not have. */
  readonly model: string
}

/** The simulators' own address is left out, because they may have another one when the record is read. */
export function writeStoredTask<Ask>(
  { steering, origin, model, ...task }: VideoTask<Ask>,
  family: TaskFamily<Ask>,
  own: string,
): StoredTask<Ask> {
  const { failure } = task
  return {
    ...task,
    model: JSON.stringify(model, writeBig),
    ask: family.withoutWords(task.ask),
    // `failure` may be a thrown error, whose message JSON would leave out.
    failure: failure && { code: failure.code, message: failure.message },
    words: steering.words(),
    ...(origin !== own && { origin }),
  }
}

/** Undefined for a record with missing fields, which these simulators did not write. */
export function readStoredTask<Ask>(video: Fields, own: string): Task<Ask> | undefined {
  if (!isStoredTask<Ask>(video)) return undefined
  const { words, origin = own, model: written, ...task } = video
  const model = readModel(written)
  if (model === undefined) return undefined
  return {
    ...task,
    model,
    origin,
    steering: readSteering(words),
    // JSON leaves out undefined fields, which the type requires.
    oddWord: video.oddWord,
    startedAt: video.startedAt,
    endedAt: video.endedAt,
  }
}

const states: ReadonlySet<string> = new Set<VideoState>([
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'expired',
])

/** Trusts `ask`, whose type only the family knows, because the same simulators wrote it. */
function isStoredTask<Ask>(video: Fields): video is Fields & StoredTask<Ask> {
  const numbers = [video.seed, video.createdAt, video.changedAt, video.polls]
  const texts = [video.id, video.words, video.model]
  return (
    numbers.every((value) => typeof value === 'number') &&
    texts.every((value) => typeof value === 'string') &&
    states.has(textIn(video.state)) &&
    isFields(video.clip) &&
    isFields(video.units) &&
    'ask' in video
  )
}

function readModel(text: string): SandboxModel | undefined {
  try {
    const model: SandboxModel = JSON.parse(text, readBig)
    return isFields(model.prices) ? model : undefined
  } catch {
    return undefined
  }
}

function writeBig(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? { big: String(value) } : value
}

function readBig(_key: string, value: unknown): unknown {
  return isFields(value) && typeof value.big === 'string' ? BigInt(value.big) : value
}
