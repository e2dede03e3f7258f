import { noUnits } from '../bill.ts'
import { type Fields, isGiven, parseFields, textIn } from '../fields.ts'
import type { World } from '../protocol.ts'
import { readSteering } from '../steering.ts'
import type { Callbacks } from '../video/callbacks.ts'
import { type Creation, failureIn } from '../video/creation.ts'
import { framesPerSecond } from '../video/mp4.ts'
import { type TaskFamily, type VideoTask, writeDigits } from '../video/tasks.ts'
import type { CodedRefusal } from '../refusal.ts'
import { errorForCode, invalidField } from './errors.ts'
import { klingDialect, writeKling } from './dialect.ts'
import { writeData } from './record.ts'

/** What a task is made from. A task is found only under the path of its kind. */
export type Kind = 'text2video' | 'image2video'

export type KlingAsk = {
  readonly kind: Kind
  readonly externalId: string
  readonly callbackUrl: string
  readonly mode: 'std' | 'pro'
  /** The length that was ordered, which is billed. */
  readonly seconds: number
  readonly sound: boolean
}

export const klingTasks: TaskFamily<KlingAsk> = {
  name: 'kling',
  keptMs: 30 * 24 * 60 * 60 * 1_000,
  writeId: writeDigits,
  tell: tellChange,
  withoutWords: (ask) => ask,
}

const textCharactersMax = 2_500
const modelUsual = 'kling-v1'
const shapes = { '16:9': [1280, 720], '9:16': [720, 1280], '1:1': [960, 960] } as const
// A professional video has 1.5 times as many pixels on each side.
const proScale = 1.5
// The file is a little longer than the video that was ordered: 5.1 seconds for 5.
const framesMore = 3

export const klingCreation = (kind: Kind): Creation<Fields, KlingAsk, CodedRefusal<number>> => ({
  dialect: klingDialect,
  family: klingTasks,
  open({ text }) {
    const body = readBody(text)
    return { model: isGiven(body.model_name) ? textIn(body.model_name) : modelUsual, body }
  },
  read(body, _model, _call, world) {
    const prompt = readText(body, 'prompt')
    readText(body, 'negative_prompt')
    if (kind === 'text2video' && prompt === '') throw invalidField('prompt is required')
    if (kind === 'image2video') checkImages(body)
    const mode = oneOf(body, 'mode', ['std', 'pro'])
    const ratio = oneOf(body, 'aspect_ratio', ['16:9', '9:16', '1:1'])
    const sound = oneOf(body, 'sound', ['off', 'on']) === 'on'
    const seconds = Number(oneOf(body, 'duration', ['5', '10']))
    checkScale(body.cfg_scale)
    const steering = readSteering(prompt)
    const frames = (steering.number('seconds') ?? seconds) * framesPerSecond + framesMore
    const [width, height] = shapes[ratio].map((side) => (mode === 'pro' ? side * proScale : side))
    const ask = { kind, externalId: readExternalId(body, world), callbackUrl: readCallback(body), mode, seconds, sound }
    return {
      steering,
      ask,
      clip: { width: width ?? 0, height: height ?? 0, frames, sound },
      units: { ...noUnits, video: { seconds, resolution: mode, sound } },
      failure: failureIn(steering, errorForCode),
    }
  },
  write: (task) => ({ text: writeKling({ path: task.id, text: '' }, writeData(task)) }),
})

function tellChange(task: VideoTask<KlingAsk>, callbacks: Callbacks): void {
  const { callbackUrl } = task.ask
  if (callbackUrl !== '') callbacks.post(task, callbackUrl, writeData(task), 1)
}

function readBody(text: string): Fields {
  const body = parseFields(text)
  if (body === undefined) throw errorForCode('1200')
  return body
}

function readText(body: Fields, name: string): string {
  const value = body[name] ?? ''
  if (typeof value !== 'string') throw invalidField(`${name} must be a string`)
  if (Array.from(value).length > textCharactersMax)
    throw invalidField(`${name} length cannot exceed ${textCharactersMax}`)
  return value
}

/** The first word is the default. A duration is a string too: the number 5 is refused. */
function oneOf<Word extends string>(body: Fields, name: string, words: readonly [Word, ...Word[]]): Word {
  const value = body[name] ?? words[0]
  const found = words.find((word) => word === value)
  if (found !== undefined) return found
  throw invalidField(`${name} value ${JSON.stringify(value)} is invalid`)
}

/** A URL, or base64 without the data URL prefix that other vendors require. */
function checkImages(body: Fields): void {
  const given = ['image', 'image_tail'].filter((name) => isGiven(body[name]) && body[name] !== '')
  if (given.length === 0) throw invalidField('image and image_tail cannot be empty at the same time')
  for (const name of given) {
    if (!/^(https?:\/\/[^/]|[A-Za-z0-9+/]+=*$)/.test(textIn(body[name]))) throw invalidField(`${name} is invalid`)
  }
}

function checkScale(value: unknown): void {
  if (!isGiven(value)) return
  if (typeof value !== 'number' || value < 0 || value > 1) throw invalidField('cfg_scale must be in [0, 1]')
}

/** The caller's own id for a task, which must be unique. */
function readExternalId(body: Fields, { videos }: World): string {
  const id = readText(body, 'external_task_id')
  const isTaken =
    id !== '' &&
    videos
      .of(klingTasks)
      .list()
      .some(({ ask }) => ask.externalId === id)
  if (isTaken) throw invalidField(`external_task_id ${id} already exists`)
  return id
}

function readCallback(body: Fields): string {
  const url = readText(body, 'callback_url')
  if (url !== '' && !URL.canParse(url)) throw invalidField('callback_url is invalid')
  return url
}
