import { noUnits } from '../bill.ts'
import { type Fields, parseFields } from '../fields.ts'
import { errorForCode, type GoogleError, invalid, writeJson } from '../gemini/errors.ts'
import { dialectOn } from '../gemini/dialect.ts'
import { seededId } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { type Creation, failureIn } from '../video/creation.ts'
import { framesPerSecond } from '../video/mp4.ts'
import type { TaskFamily } from '../video/tasks.ts'
import { readWish, type Wish } from './check.ts'

export type VeoAsk = { readonly wish: Wish; readonly root: string }

export const veoDialect = dialectOn('predictLongRunning')

export const veoTasks: TaskFamily<VeoAsk> = {
  name: 'veo',
  keptMs: 2 * 24 * 60 * 60 * 1_000,
  writeId: (seed) => seededId('', seed).toLowerCase().slice(0, 12),
  withoutWords: ({ wish, root }) => ({ wish: { ...wish, prompt: '' }, root }),
}

const shapes: Readonly<Record<Wish['resolution'], readonly [width: number, height: number]>> = {
  '720p': [1280, 720],
  '1080p': [1920, 1080],
  '4k': [3840, 2160],
}

/** The model is part of the path, so there is a creation per model. */
export const veoCreation = (model: string, root: string): Creation<Fields, VeoAsk, GoogleError> => ({
  dialect: veoDialect,
  family: veoTasks,
  open: ({ text }) => ({ model, body: readBody(text) }),
  read(body) {
    const asked = readWish(body, model)
    const steering = readSteering(asked.prompt)
    const wish = { ...asked, seconds: steering.number('seconds') ?? asked.seconds }
    const [long, short] = shapes[wish.resolution]
    const [width, height] = wish.aspectRatio === '16:9' ? [long, short] : [short, long]
    const video = { seconds: wish.seconds * wish.samples, resolution: wish.resolution, sound: true }
    return {
      steering,
      ask: { wish, root },
      clip: { width, height, frames: wish.seconds * framesPerSecond, sound: true },
      // A filtered video is free.
      units: steering.has('blocked') ? noUnits : { ...noUnits, video },
      failure: failureIn(steering, errorForCode),
    }
  },
  write: ({ id }) => ({ text: writeJson({ name: operationName(model, id) }) }),
})

export function operationName(model: string, id: string): string {
  return `models/${model}/operations/${id}`
}

function readBody(text: string): Fields {
  const body = parseFields(text)
  if (body === undefined) throw invalid('Invalid JSON payload received.')
  return body
}
