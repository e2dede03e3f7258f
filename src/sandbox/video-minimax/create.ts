import { noUnits } from '../bill.ts'
import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import type { SandboxPrices } from '../model.ts'
import { openFields } from '../serve.ts'
import { readSteering } from '../steering.ts'
import type { Creation } from '../video/creation.ts'
import { framesPerSecond } from '../video/mp4.ts'
import { type TaskFamily, writeDigits } from '../video/tasks.ts'
import type { CodedRefusal } from '../refusal.ts'
import { errorForCode, invalid, writeBase } from './errors.ts'
import { minimaxDialect } from './dialect.ts'

export type MinimaxAsk = {
  /** How often its file was requested. */
  readonly file: { calls: number }
}

export const minimaxTasks: TaskFamily<MinimaxAsk> = {
  name: 'minimax',
  keptMs: 24 * 60 * 60 * 1_000,
  writeId: writeDigits,
  withoutWords: (ask) => ask,
}

const shapes = { '768P': [1360, 768], '512P': [912, 512], '1080P': [1920, 1080] } as const

export const minimaxCreation: Creation<Fields, MinimaxAsk, CodedRefusal<number>> = {
  dialect: minimaxDialect,
  family: minimaxTasks,
  open: openFields(() => invalid('the body is no object')),
  read(body, { prices }) {
    const prompt = readText(body, 'prompt')
    const frames = ['first_frame_image', 'last_frame_image'].filter((name) => readText(body, name) !== '')
    for (const name of frames) checkImage(body[name], name)
    checkSubjects(body)
    if (prompt === '' && frames.length === 0) throw invalid('prompt is empty')
    if (isGiven(body.prompt_optimizer) && typeof body.prompt_optimizer !== 'boolean') throw invalid('prompt_optimizer')
    const resolution = oneOf(body, 'resolution', ['768P', '512P', '1080P'])
    const seconds = oneOf(body, 'duration', [6, 10])
    checkSold(resolution, seconds, prices)
    const steering = readSteering(prompt)
    const [width, height] = shapes[resolution]
    const made = steering.number('seconds') ?? seconds
    const code = steering.text('fail')
    return {
      steering,
      ask: { file: { calls: 0 } },
      clip: { width, height, frames: made * framesPerSecond, sound: false },
      // Billed as ordered, whatever the real length.
      units: { ...noUnits, video: { seconds, resolution: resolution.toLowerCase(), sound: false } },
      failure: code === undefined ? undefined : failureFor(code),
    }
  },
  write: ({ id }) => ({ text: JSON.stringify({ task_id: id, ...writeBase() }) }),
}

/** The vendor's codes are numbers, so a word gets the number of an unknown error. */
function failureFor(name: string): { code: string; message: string } {
  const { code, message } = errorForCode(name)
  return { code: String(code), message }
}

function readText(body: Fields, name: string): string {
  const value = body[name] ?? ''
  if (typeof value !== 'string') throw invalid(`${name} is no string`)
  return value
}

/** The first value is the default. */
function oneOf<Value extends string | number>(body: Fields, name: string, values: readonly [Value, ...Value[]]): Value {
  const given = body[name] ?? values[0]
  const found = values.find((value) => value === given)
  if (found !== undefined) return found
  throw invalid(`${name} ${JSON.stringify(given)}`)
}

function checkImage(value: unknown, name: string): void {
  if (!/^(?:https?:\/\/[^/]|data:image\/\w+;base64,)/.test(textIn(value))) throw invalid(`${name} is no image`)
}

function checkSubjects(body: Fields): void {
  if (!isGiven(body.subject_reference)) return
  const subjects = itemsIn(body.subject_reference).map(fieldsIn)
  if (subjects.length === 0) throw invalid('subject_reference')
  for (const { type, image } of subjects) {
    const images = itemsIn(image)
    if (type !== 'character' || images.length === 0) throw invalid('subject_reference')
    for (const one of images) checkImage(one, 'subject_reference')
  }
}

/** The vendor refuses a combination that is not on its price list. */
function checkSold(resolution: string, seconds: number, { perVideo }: SandboxPrices): void {
  if (perVideo && perVideo[`${resolution.toLowerCase()}/${seconds}s`] === undefined) {
    throw invalid(`duration ${seconds} with resolution ${resolution}`)
  }
}
