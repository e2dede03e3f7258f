import { isGiven, type Json, type JsonObject } from '../../base/json.ts'
import type { VideoForm, VideoLimits } from '../../capabilities/limits.ts'
import { agreed, notOneOf, type Places, refusal, unsupported, wrongType } from './video-fields.ts'
import { sizingFields } from './video-sizing.ts'

/** A rule on one field of `parameters`; it throws, or lets the value pass. */
type Rule = (value: Exclude<Json, null>, at: string, limits: VideoLimits) => void

const boolean: Rule = (value, at) => {
  if (typeof value !== 'boolean') throw wrongType(at, 'true or false')
}

const text: Rule = (value, at) => {
  if (typeof value !== 'string') throw wrongType(at, 'a string')
}

const integer =
  (least: number, most: number): Rule =>
  (value, at) => {
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw wrongType(at, 'an integer')
    if (value < least || value > most) throw refusal(`Invalid '${at}': expected ${least} to ${most}.`, at)
  }

const oneOf =
  (...words: readonly string[]): Rule =>
  (value, at) => {
    if (typeof value !== 'string' || !words.includes(value)) throw notOneOf(at, value, words)
  }

const refused =
  (why: string): Rule =>
  (_, at) => {
    throw unsupported(at, why)
  }

const unlessOff =
  (why: string): Rule =>
  (value, at) => {
    if (value !== false) throw unsupported(at, why)
  }

const unlessEmpty =
  (why: string): Rule =>
  (value, at) => {
    if (!Array.isArray(value) || value.length > 0) throw unsupported(at, why)
  }

/** One film is made and paid for. */
const one: Rule = (value, at) => {
  if (value !== 1) throw notOneOf(at, value, [1])
}

const seedMax = 2_147_483_647
const expirySecondsMin = 3_600

/**
 * What is checked here, in whichever form it comes: what the vendor would find out only minutes later, what changes its
 * price, and what would make it call somebody. Anything else passes on as the client wrote it.
 */
const rules: Readonly<Record<string, Rule>> = {
  prompt_extend: boolean,
  prompt_optimizer: boolean,
  watermark: boolean,
  audio: boolean,
  generate_audio: boolean,
  camera_fixed: boolean,
  draft: boolean,
  return_last_frame: boolean,
  negative_prompt: text,
  safety_identifier: text,
  shot_type: oneOf('single', 'multi'),
  sound: oneOf('on', 'off'),
  priority: integer(0, 9),
  seed: (value, at, limits) => integer(isOlderWan(limits.form) ? 0 : -1, seedMax)(value, at, limits),
  // Beyond our own deadline nobody would be there to take it.
  execution_expires_after: (value, at, limits) =>
    integer(expirySecondsMin, Math.max(expirySecondsMin, limits.deadlineSeconds))(value, at, limits),
  service_tier: oneOf('default', 'auto'),
  off_peak: unlessOff('is not supported: off-peak generation has another price.'),
  is_rec: unlessOff('is not supported: it has a price of its own.'),
  tools: unlessEmpty('is not supported: hosted tools have no price.'),
  // Kling's: a film in which somebody speaks with a voice of one's choice costs more than one with sound.
  voice_list: unlessEmpty('is not supported: voices have no price.'),
  n: one,
  sampleCount: one,
  mode: oneOf('std', 'pro'),
  frames: refused("is not supported: use 'duration'."),
  fps: refused('is not supported.'),
  callback_url: refused("is not supported: use 'webhook_url'."),
}

function isOlderWan(form: VideoForm): boolean {
  return form === 'wan2.5' || form === 'wan2.6' || form === 'wan2.7'
}

/** `parameters` with what stands elsewhere, checked; sizes and lengths are left out, since adapters write those anew. */
export function readParameters(parameters: JsonObject, placesOf: Places, limits: VideoLimits): JsonObject {
  const read: Record<string, Json> = {}
  for (const [name, value] of Object.entries(parameters)) {
    if (isGiven(value) && !sizingFields.has(name)) read[name] = value
  }
  for (const [name, rule] of Object.entries(rules)) {
    const places = placesOf(name)
    for (const { value, at } of places) rule(value, at, limits)
    const value = agreed(places.filter((place) => typeof place.value !== 'object')) ?? places[0]
    if (value !== undefined) read[name] = value.value
  }
  return read
}

/** The models of 2.5 and 2.6 that always sound take the field and ignore it; the specification has it on all of 2.6. */
const ignoringForms: ReadonlySet<VideoForm> = new Set(['wan2.5', 'wan2.6'])

/** Whether it will be heard, which some models charge for. Each family has its own word for it. */
export function readSound(parameters: JsonObject, { sound, form }: VideoLimits): boolean {
  const given = agreed(
    ['audio', 'generate_audio', 'sound'].flatMap((name) => {
      const value = parameters[name]
      return isGiven(value) ? [{ value: value === true || value === 'on', at: `parameters.${name}` }] : []
    }),
  )
  // Kling is silent unless asked; all others that can choose sound unless asked not to.
  if (sound === 'optional') return given?.value ?? form !== 'kling'
  const isAlways = sound === 'always'
  if (given === undefined || given.value === isAlways || ignoringForms.has(form)) return isAlways
  throw unsupported(
    given.at,
    isAlways ? 'cannot be off: this model always generates audio.' : 'cannot be on: this model is silent.',
  )
}
