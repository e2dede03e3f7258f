import { VendorError } from '../chat/errors.ts'
import { type Fields, isGiven } from '../fields.ts'
import type { Content } from './content.ts'
import { type Family, ratios } from './families.ts'
import { invalidField } from './refusals.ts'

/** Everything besides the content that determines the video, the bill and the record. */
export type Settings = {
  readonly resolution: string
  readonly ratio: string
  /** Chosen by the model if the request says -1. */
  readonly seconds: number
  /** Given instead of seconds. Only the oldest models take it. */
  readonly frames: number | undefined
  readonly seed: number
  readonly generateAudio: boolean
  readonly isDraft: boolean
  readonly serviceTier: 'default' | 'flex'
  readonly expiresAfterSeconds: number
  readonly priority: number
  readonly returnLastFrame: boolean
  readonly callbackUrl: string | undefined
}

const secondsChosen = 5

/** A rule for one field: returns the value or throws the refusal. */
type Reader<T> = (value: unknown, name: string) => T

/**
 * Body fields are checked strictly. A flag in the prompt applies if the body lacks the field, and is dropped if bad.
 */
export function readSettings(body: Fields, flags: Fields, family: Family, content: Content): Settings {
  function read<T>(name: string, usual: T, reader: Reader<T>): T {
    if (isGiven(body[name])) return reader(body[name], name)
    if (!isGiven(flags[name])) return usual
    try {
      return reader(flags[name], name)
    } catch (error) {
      if (error instanceof VendorError) return usual
      throw error
    }
  }
  const { generation, makesDrafts, isFlexible } = family
  const isDraft = read('draft', false, boolean)
  if (isDraft && !makesDrafts) throw invalidField('draft', 'the model does not support draft mode')
  const serviceTier = read<'default' | 'flex'>('service_tier', 'default', oneOf(['default', 'flex']))
  if (serviceTier === 'flex' && !isFlexible) throw invalidField('service_tier', 'flex is not supported by the model')
  if (serviceTier === 'flex' && isDraft) throw invalidField('service_tier', 'flex is not supported in draft mode')
  const returnLastFrame = read('return_last_frame', false, boolean)
  if (isDraft && returnLastFrame) throw invalidField('return_last_frame', 'it is not supported in draft mode')
  const resolution = read('resolution', isDraft ? '480p' : '720p', oneOf(family.resolutions))
  if (isDraft && resolution !== '480p') throw invalidField('resolution', 'draft mode supports 480p only')
  const ratio = read('ratio', 'adaptive', oneOf(ratios))
  const isFramed = content.mode === 'first' || content.mode === 'first-last'
  if (generation === '2.5' && isFramed && ratio !== 'adaptive') {
    throw invalidField('ratio', 'the output ratio follows the first-frame image', 'InvalidParameter.TaskTypeConstraint')
  }
  const isAudible = read('generate_audio', family.hasAudio, boolean)
  if (isAudible && !family.hasAudio) throw invalidField('generate_audio', 'it is not supported by the model')
  for (const name of ['watermark', 'camera_fixed']) read(name, false, boolean)
  return {
    resolution,
    ratio,
    seconds: read('duration', secondsChosen, durationOf(family)),
    frames: generation === '1.0' ? read<number | undefined>('frames', undefined, frames) : undefined,
    seed: read('seed', -1, integer(-1, 2_147_483_647)),
    generateAudio: isAudible,
    isDraft,
    serviceTier,
    expiresAfterSeconds: read('execution_expires_after', 172_800, integer(3_600, 259_200)),
    priority: read('priority', 0, integer(0, 9)),
    returnLastFrame,
    callbackUrl: read<string | undefined>('callback_url', undefined, url),
  }
}

const boolean: Reader<boolean> = (value, name) => {
  if (typeof value === 'boolean') return value
  throw invalidField(name, 'it must be a boolean')
}

const integer =
  (least: number, most: number): Reader<number> =>
  (value, name) => {
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
    throw invalidField(name, `it must be an integer between ${least} and ${most}`)
  }

function oneOf<Word extends string>(words: readonly Word[]): Reader<Word> {
  return (value, name) => {
    const found = words.find((word) => word === value)
    if (found !== undefined) return found
    throw invalidField(name, `it must be one of ${words.join(', ')}`)
  }
}

function durationOf({ seconds: [least, most], generation }: Family): Reader<number> {
  return (value, name) => {
    if (value === -1 && generation !== '1.0') return secondsChosen
    return integer(least, most)(value, name)
  }
}

/** 25 plus a multiple of four. */
const frames: Reader<number> = (value, name) => {
  const count = integer(29, 289)(value, name)
  if (count % 4 !== 1) throw invalidField(name, 'it must be 25 + 4n')
  return count
}

const url: Reader<string> = (value, name) => {
  if (typeof value === 'string' && URL.canParse(value) && /^https?:/.test(value)) return value
  throw invalidField(name, 'it is not a valid url')
}
