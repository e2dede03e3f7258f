import { isGiven, type Json, type JsonObject } from '../../base/json.ts'
import type { VideoForm, VideoLimits } from '../../capabilities/limits.ts'
import type { VideoAsk } from '../../capabilities/video.ts'
import {
  agreed,
  checkLength,
  notOneOf,
  parameterAt,
  type Places,
  refusal,
  unsupported,
  wrongType,
} from './video-fields.ts'
import { sizingFields } from './video-sizing.ts'
import { isWanVersion } from './video-wan.ts'

/** A rule on one field of `parameters`; it throws, or lets the value pass. */
type Rule = (value: Exclude<Json, null>, at: string, limits: VideoLimits) => void

const boolean: Rule = (value, at) => {
  if (typeof value !== 'boolean') throw wrongType(at, 'true or false')
}

const text: Rule = (value, at) => {
  if (typeof value !== 'string') throw wrongType(at, 'a string')
  checkLength(value, at)
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

/** Each request makes, and is charged for, one video. */
const one: Rule = (value, at) => {
  if (value !== 1) throw notOneOf(at, value, [1])
}

const seedMax = 2_147_483_647
const expirySecondsMin = 3_600

/**
 * The fields that are checked here, in whichever form they come: mistakes that the vendor would report only minutes
 * later, options that change its price, and options that make it call a URL. All other fields pass on as the client
 * wrote them.
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
  seed: (value, at, limits) => integer(isWanVersion(limits.form) ? 0 : -1, seedMax)(value, at, limits),
  // A video finished after the task's own deadline would never be collected.
  execution_expires_after: (value, at, limits) =>
    integer(expirySecondsMin, Math.max(expirySecondsMin, limits.deadlineSeconds))(value, at, limits),
  service_tier: oneOf('default', 'auto'),
  off_peak: unlessOff('is not supported: off-peak generation has another price.'),
  is_rec: unlessOff('is not supported: it has a price of its own.'),
  tools: unlessEmpty('is not supported: hosted tools have no price.'),
  // Kling charges more for a video in which a chosen voice speaks than for one with sound.
  voice_list: unlessEmpty('is not supported: voices have no price.'),
  n: one,
  sampleCount: one,
  mode: oneOf('std', 'pro'),
  frames: refused("is not supported: use 'duration'."),
  fps: refused('is not supported.'),
  callback_url: refused("is not supported: use 'webhook_url'."),
}

export const parameterNames: readonly string[] = Object.keys(rules)

/** `parameters` and the same fields from other places, checked. Sizes and lengths are left out: adapters write them. */
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

/** The fields in which the client gave these parameters. At the top level only those with a rule are read. */
export function fieldsOf(parameters: JsonObject, placesOf: Places): Readonly<Record<string, string>> {
  const found = Object.keys(parameters).map((name) => {
    const isRead = (at: string) => at !== name || Object.hasOwn(rules, name)
    return placesOf(name).flatMap(({ at }) => (isRead(at) ? [[name, at] as const] : []))
  })
  return Object.fromEntries(found.flatMap(([first]) => (first === undefined ? [] : [first])))
}

/** Wan 2.5 and 2.6 models that always have sound ignore the field; the specification lists it for all of 2.6. */
const ignoringForms: ReadonlySet<VideoForm> = new Set(['wan2.5', 'wan2.6'])

/** Whether the video has sound, which some models charge for. Each family has its own name for the field. */
export function readAudio(given: Pick<VideoAsk, 'parameters' | 'parametersAt'>, { sound, form }: VideoLimits): boolean {
  const asked = agreed(
    ['audio', 'generate_audio', 'sound'].flatMap((name) => {
      const value = given.parameters[name]
      return isGiven(value) ? [{ value: value === true || value === 'on', at: parameterAt(given, name) }] : []
    }),
  )
  // Kling is silent unless asked for sound; every other model with the option has sound unless asked not to.
  if (sound === 'optional') return asked?.value ?? form !== 'kling'
  const isAlways = sound === 'always'
  if (asked === undefined || asked.value === isAlways || ignoringForms.has(form)) return isAlways
  throw unsupported(
    asked.at,
    isAlways ? 'cannot be off: this model always generates audio.' : 'cannot be on: this model is silent.',
  )
}
