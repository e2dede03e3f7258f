import { noUnits } from '../bill.ts'
import { type Fields, isGiven } from '../fields.ts'
import { openFields } from '../serve.ts'
import { readSteering } from '../steering.ts'
import { type Creation, failureIn } from '../video/creation.ts'
import { framesPerSecond, sizeIn } from '../video/mp4.ts'
import type { TaskFamily } from '../video/tasks.ts'
import type { CodedRefusal } from '../refusal.ts'
import { errorForCode, invalid, writeAnswer } from './errors.ts'
import { pixverseDialect } from './dialect.ts'
import { isImageId } from './upload.ts'

/** The fields that a task's record repeats. */
export type PixverseAsk = { readonly prompt: string; readonly negativePrompt: string; readonly seed: number }

export const pixverseTasks: TaskFamily<PixverseAsk> = {
  name: 'pixverse',
  keptMs: 24 * 60 * 60 * 1_000,
  // A number with no more digits than JSON holds.
  writeId: (seed, createdAt) => `${createdAt}${String(seed % 1_000).padStart(3, '0')}`,
  withoutWords: ({ seed }) => ({ prompt: '', negativePrompt: '', seed }),
}

const ratios = ['16:9', '9:16', '4:3', '3:4', '1:1', '3:2', '2:3', '21:9'] as const

const promptCharactersMax = 5_000
const negativeCharactersMax = 2_048
const secondsMax = 15
const seedMax = 2_147_483_647

/** What a task is made from. Each kind has its own path. */
export const kinds = ['text', 'img', 'transition'] as const
type Kind = (typeof kinds)[number]

/** The image fields that each kind requires. */
const imageFields: Readonly<Record<Kind, readonly string[]>> = {
  text: [],
  img: ['img_id'],
  transition: ['first_frame_img', 'last_frame_img'],
}

export const pixverseCreation = (kind: Kind): Creation<Fields, PixverseAsk, CodedRefusal<number>> => ({
  dialect: pixverseDialect,
  family: pixverseTasks,
  open: openFields(() => invalid('the body is no object', 400013)),
  read(body) {
    const prompt = readText(body, 'prompt', promptCharactersMax, 400018)
    if (prompt === '') throw invalid('prompt is empty', 400011)
    const negativePrompt = readText(body, 'negative_prompt', negativeCharactersMax, 400019)
    for (const name of imageFields[kind]) readImageId(body, name)
    // A video made from images takes their shape, which the sandbox does not know.
    const ratio = kind === 'text' ? oneOf(body, 'aspect_ratio', ratios) : '16:9'
    const resolution = oneOf(body, 'quality', ['360p', '540p', '720p', '1080p'])
    const seconds = readWhole(body, 'duration', 1, secondsMax)
    const seed = isGiven(body.seed) ? readWhole(body, 'seed', 0, seedMax) : 0
    const sound = readSwitch(body, 'generate_audio_switch')
    readSwitch(body, 'water_mark')
    const steering = readSteering(prompt)
    const made = steering.number('seconds') ?? seconds
    return {
      steering,
      ask: { prompt, negativePrompt, seed },
      clip: { ...sizeIn(ratio, Number.parseInt(resolution, 10)), frames: made * framesPerSecond, sound },
      // Billed as ordered, whatever the real length.
      units: { ...noUnits, video: { seconds, resolution, sound } },
      failure: failureIn(steering, errorForCode),
    }
  },
  write: ({ id }) => ({ text: JSON.stringify(writeAnswer({ video_id: Number(id) })) }),
})

function readImageId(body: Fields, name: string): void {
  if (!isGiven(body[name])) throw invalid(`${name} is empty`, 400011)
  if (!isImageId(body[name])) throw invalid(`${name} is not there`, 400032)
}

function readText(body: Fields, name: string, charactersMax: number, tooLong: number): string {
  const value = body[name] ?? ''
  if (typeof value !== 'string') throw invalid(`${name} is no string`, 400013)
  if (Array.from(value).length > charactersMax) throw invalid(`${name} is too long`, tooLong)
  return value
}

/** The field is required. */
function oneOf<Word extends string>(body: Fields, name: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === body[name])
  if (found !== undefined) return found
  throw isGiven(body[name]) ? invalid(`${name} ${JSON.stringify(body[name])}`) : invalid(`${name} is empty`, 400011)
}

function readWhole(body: Fields, name: string, least: number, most: number): number {
  const value = body[name]
  if (!isGiven(value)) throw invalid(`${name} is empty`, 400011)
  if (typeof value !== 'number') throw invalid(`${name} is no number`, 400013)
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw invalid(`${name} ${value}`)
}

function readSwitch(body: Fields, name: string): boolean {
  const value = body[name] ?? false
  if (typeof value !== 'boolean') throw invalid(`${name} is neither true nor false`, 400013)
  return value
}
