import { noUnits } from '../bill.ts'
import { badRequest, errorForCode, type VendorError } from '../chat/errors.ts'
import { type Fields, fieldsIn, isFields, isGiven, textIn } from '../fields.ts'
import { commonHeaders, commonDialect, oneOf, openJson, requiredText } from '../media/common.ts'
import { checkKnown } from '../responses/shape.ts'
import { hexDigits, seeded } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { type Creation, failureIn } from '../video/creation.ts'
import { framesPerSecond } from '../video/mp4.ts'
import type { TaskFamily } from '../video/tasks.ts'
import { writeTask } from './record.ts'

export type SoraAsk = {
  readonly prompt: string
  /** As the record reports and the bill counts them. */
  readonly seconds: number
  readonly size: string
}

export const soraTasks: TaskFamily<SoraAsk> = {
  name: 'sora',
  keptMs: 24 * 60 * 60 * 1_000,
  writeId: (seed) => `video_${hexDigits(seeded(seed), 32)}`,
  withoutWords: (ask) => ({ ...ask, prompt: '' }),
}

const promptCharactersMax = 32_000
const known = ['model', 'prompt', 'seconds', 'size', 'input_reference'] as const
const sizes = ['720x1280', '1280x720'] as const
const largeSizes = ['1024x1792', '1792x1024'] as const
/** The names of the two tiers on the price list. */
const [usualTier, largeTier] = ['720p', '1792x1024']

export const soraCreation: Creation<Fields, SoraAsk, VendorError> = {
  dialect: commonDialect,
  family: soraTasks,
  open: openJson,
  read(body, { model }) {
    checkKnown(body, known)
    const prompt = requiredText(body, 'prompt', promptCharactersMax)
    if (isGiven(body.input_reference)) checkReference(body.input_reference)
    const asked = Number(readSeconds(body))
    const size = oneOf(body, 'size', model.endsWith('-pro') ? [...sizes, ...largeSizes] : sizes)
    const [width = 0, height = 0] = size.split('x').map(Number)
    const steering = readSteering(prompt)
    const made = steering.number('seconds') ?? asked
    const seconds = steering.has('zero') ? 0 : made
    const resolution = largeSizes.some((large) => large === size) ? largeTier : usualTier
    return {
      steering,
      ask: { prompt, seconds, size },
      clip: { width, height, frames: made * framesPerSecond, sound: true },
      units: { ...noUnits, video: { seconds, resolution, sound: true } },
      failure: failureIn(steering, errorFor),
    }
  },
  write: (task) => ({ text: JSON.stringify(writeTask(task)), headers: commonHeaders({ text: task.id }) }),
}

/** Sora takes the seconds as a string and refuses a number. */
function readSeconds(body: Fields): string {
  const { seconds } = body
  if (isGiven(seconds) && typeof seconds !== 'string') {
    throw badRequest(`Invalid type for 'seconds': expected one of '4', '8', or '12'.`, 'seconds', 'invalid_type')
  }
  return oneOf(body, 'seconds', ['4', '8', '12'])
}

/** A link that the vendor fetches, or the image itself. The sandbox has no files of the account. */
function checkReference(reference: unknown): void {
  const { image_url: image } = fieldsIn(reference)
  if (isFields(reference) && /^(?:https?:\/\/[^/]|data:image\/\w+;base64,)/.test(textIn(image))) return
  throw badRequest("Invalid value for 'input_reference': expected an image.", 'input_reference', 'invalid_value')
}

function errorFor(code: string): Error {
  return code === 'moderation_blocked'
    ? new Error('Your request was blocked by our moderation system.')
    : errorForCode(code)
}
