import { noUnits } from '../bill.ts'
import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { hexDigits, seeded } from '../seeded.ts'
import { openFields } from '../serve.ts'
import { readSteering } from '../steering.ts'
import type { Creation } from '../video/creation.ts'
import { framesPerSecond } from '../video/mp4.ts'
import type { TaskFamily } from '../video/tasks.ts'
import type { Refusal } from '../refusal.ts'
import { errorForStatus, failureFor, invalidField } from './errors.ts'
import { runwayDialect } from './dialect.ts'

/** What a task is made from. Each kind has its own path and fields. */
export type Kind = 'text_to_video' | 'image_to_video' | 'video_to_video'

export const runwayTasks: TaskFamily<Kind> = {
  name: 'runway',
  keptMs: 30 * 24 * 60 * 60 * 1_000,
  writeId: writeUuid,
  withoutWords: (kind) => kind,
}

const promptCharactersMax = 1_000
const seedMax = 4_294_967_295
const secondsUsual = 10
const secondsLeast = 2
const secondsMost = 10
/** Only the beginning of an input video is used. */
const changedSeconds = 5
const sizes = ['1280:720', '720:1280', '1104:832', '832:1104', '960:960', '1584:672'] as const
const textSizes = sizes.slice(0, 2)
/** Runway has only this resolution. */
const resolution = '720p'

export const runwayCreation = (kind: Kind): Creation<Fields, Kind, Refusal> => ({
  dialect: runwayDialect,
  family: runwayTasks,
  open: openFields(() => errorForStatus(400)),
  read(body) {
    const prompt = readPrompt(body, kind)
    checkSeed(body.seed)
    const asked = kind === 'video_to_video' ? readVideo(body) : readScene(body, kind)
    const steering = readSteering(prompt)
    const [width = 0, height = 0] = asked.size.split(':').map(Number)
    const seconds = steering.number('seconds') ?? asked.seconds
    const code = steering.text('fail')
    return {
      steering,
      ask: kind,
      clip: { width, height, frames: seconds * framesPerSecond, sound: false },
      // Runway bills what was ordered, whatever the real length.
      units: { ...noUnits, video: { seconds: asked.seconds, resolution, sound: false } },
      failure: code === undefined ? undefined : failureFor(code),
    }
  },
  write: ({ id }) => ({ text: JSON.stringify({ id }) }),
})

function readPrompt(body: Fields, kind: Kind): string {
  const { promptText } = body
  if (!isGiven(promptText) && kind === 'image_to_video') return ''
  if (typeof promptText !== 'string' || promptText === '') throw invalidField('promptText', 'expected a string')
  if (promptText.length > promptCharactersMax) throw invalidField('promptText', 'too long')
  return promptText
}

function checkSeed(seed: unknown): void {
  if (!isGiven(seed)) return
  if (!isWhole(seed, 0, seedMax)) throw invalidField('seed', `expected 0 to ${seedMax}`)
}

type Asked = { readonly size: string; readonly seconds: number }

function readScene(body: Fields, kind: Kind): Asked {
  const isText = kind === 'text_to_video'
  if (isText && isGiven(body.promptImage)) throw invalidField('promptImage', 'unexpected')
  if (!isText) readImage(body.promptImage)
  const known: readonly string[] = isText ? textSizes : sizes
  const size = textIn(body.ratio)
  if (!known.includes(size)) throw invalidField('ratio', `expected one of ${known.join(', ')}`)
  const { duration = secondsUsual } = body
  if (!isWhole(duration, secondsLeast, secondsMost)) {
    throw invalidField('duration', `expected ${secondsLeast} to ${secondsMost}`)
  }
  return { size, seconds: duration }
}

/** One link, or a list that holds only the first frame. */
function readImage(image: unknown): void {
  const [only, ...more] = typeof image === 'string' ? [{ uri: image, position: 'first' }] : itemsIn(image).map(fieldsIn)
  if (!only || more.length > 0 || only.position !== 'first') throw invalidField('promptImage', 'expected a first frame')
  checkLink('promptImage', only.uri, 'image')
}

function readVideo(body: Fields): Asked {
  if (isGiven(body.duration)) throw invalidField('duration', 'unexpected')
  checkLink('videoUri', body.videoUri, 'video')
  const [reference, ...more] = itemsIn(body.references).map(fieldsIn)
  if (more.length > 0) throw invalidField('references', 'expected at most one')
  if (reference) checkLink('references[0].uri', reference.uri, 'image')
  return { size: sizes[0], seconds: changedSeconds }
}

function checkLink(field: string, link: unknown, type: 'image' | 'video'): void {
  const isLink = new RegExp(`^(https://[^/]|data:${type}/)`).test(textIn(link))
  if (!isLink) throw invalidField(field, 'expected an HTTPS URL or a data URI')
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
}

function writeUuid(seed: number): string {
  const random = seeded(seed)
  const digits = (count: number): string => hexDigits(random, count)
  return `${digits(8)}-${digits(4)}-4${digits(3)}-a${digits(3)}-${digits(12)}`
}
