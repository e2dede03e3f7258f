import { noUnits } from '../bill.ts'
import type { Fields } from '../fields.ts'
import { openFields } from '../serve.ts'
import { readSteering } from '../steering.ts'
import type { Callbacks } from '../video/callbacks.ts'
import { type Creation, failureIn } from '../video/creation.ts'
import { framesPerSecond, sizeIn } from '../video/mp4.ts'
import { type TaskFamily, type VideoTask, writeDigits } from '../video/tasks.ts'
import type { CodedRefusal } from '../refusal.ts'
import { type Kind, readWish, type Wish } from './check.ts'
import { errorForCode, invalidField } from './errors.ts'
import { viduDialect } from './dialect.ts'
import { writeTask } from './record.ts'

export type ViduAsk = { readonly wish: Wish; readonly credits: number }

export const viduTasks: TaskFamily<ViduAsk> = {
  name: 'vidu',
  keptMs: 30 * 24 * 60 * 60 * 1_000,
  writeId: writeDigits,
  tell: tellChange,
  withoutWords: ({ wish, credits }) => ({ wish: { ...wish, prompt: '' }, credits }),
}

type Rates = Readonly<Record<Wish['resolution'], number>>

/** Credits per second. Models that are not listed cost as `pro`, the most expensive. */
const pro: Rates = { '540p': 9, '720p': 20, '1080p': 24 }
const turbo: Rates = { '540p': 7, '720p': 11, '1080p': 13 }
const turboReference: Rates = { '540p': 4, '720p': 10, '1080p': 13 }

function creditsFor(model: string, kind: Kind, { resolution, seconds }: Wish): number {
  const isTurbo = model.endsWith('turbo')
  const rates = !isTurbo ? pro : kind === 'reference2video' ? turboReference : turbo
  return rates[resolution] * seconds
}

export const viduCreation = (kind: Kind): Creation<Fields, ViduAsk, CodedRefusal> => ({
  dialect: viduDialect,
  family: viduTasks,
  open: openFields(() => invalidField('body', 'expected an object')),
  read(body, { model }) {
    const asked = readWish(body, kind)
    const steering = readSteering(asked.prompt)
    const wish = { ...asked, seconds: steering.number('seconds') ?? asked.seconds }
    const credits = steering.has('zero') ? 0 : (steering.number('usage') ?? creditsFor(model, kind, wish))
    const { resolution, seconds, sound } = wish
    return {
      steering,
      ask: { wish, credits },
      clip: {
        ...sizeIn(wish.ratio, Number.parseInt(resolution, 10)),
        frames: seconds * framesPerSecond,
        sound,
      },
      units: { ...noUnits, video: { seconds, tokens: Math.max(0, credits), resolution, sound } },
      failure: failureIn(steering, errorForCode),
    }
  },
  write: (task) => ({ text: JSON.stringify(writeCreated(task)) }),
})

/** Repeats the request and adds what it costs. */
function writeCreated({ id, model, createdAt, ask: { wish, credits } }: VideoTask<ViduAsk>): object {
  const { prompt, seconds, resolution, ratio, sound, seed, payload } = wish
  return {
    task_id: id,
    state: 'created',
    model: model.model,
    prompt,
    duration: seconds,
    seed,
    resolution,
    aspect_ratio: ratio,
    audio: sound,
    payload,
    credits,
    created_at: new Date(createdAt).toISOString(),
  }
}

/** Posts nothing about queued tasks. Each post is tried up to three times. */
function tellChange(task: VideoTask<ViduAsk>, callbacks: Callbacks): void {
  const { callbackUrl } = task.ask.wish
  if (callbackUrl !== '' && task.state !== 'queued') callbacks.post(task, callbackUrl, writeTask(task), 3)
}
