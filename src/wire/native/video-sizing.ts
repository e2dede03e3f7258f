import { badRequest } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { VideoForm, VideoKind, VideoLimits } from '../../capabilities/limits.ts'
import { agreed, type Given, isGiven, notOneOf, unsupported, wrongType } from './video-fields.ts'
import { type Frame, wanFrame, wanSize, wanSizes } from './wan-sizes.ts'

/** What billing follows. */
export type Sizing = {
  readonly seconds: number
  readonly isFreeLength: boolean
  readonly resolution: string
  readonly ratio: string
}

/** Where clients and vendors write the same thing. Adapters write it anew, so none of these passes on. */
const names = {
  duration: ['duration', 'durationSeconds'],
  resolution: ['resolution'],
  ratio: ['ratio', 'aspect_ratio', 'aspectRatio'],
  size: ['size'],
} as const

export const sizingFields: ReadonlySet<string> = new Set(Object.values(names).flat())

type Asked = {
  readonly body: JsonObject
  readonly parameters: JsonObject
  /** Out of the prompt, where the model's vendor reads flags there. */
  readonly flags: JsonObject
  readonly flagsAt: string
  readonly kind: VideoKind
  readonly isDraft: boolean
}

/** Top-level, in `parameters`, or as a flag: all that are given have to agree, and the default fills the rest. */
export function readSizing(asked: Asked, limits: VideoLimits): Sizing {
  const frames = placesOf(asked, undefined, names.size).map(({ value, at }) => readSize(value, at, limits))
  const duration = agreed(placesOf(asked, 'duration', names.duration).map((given) => readDuration(given, limits.form)))
  const resolution = agreed([
    ...placesOf(asked, 'resolution', names.resolution).map(readWord),
    ...readMode(asked.parameters, limits.form),
    ...frames.map(({ value, at }) => ({ value: value.resolution, at })),
  ])
  const ratio = agreed([
    ...placesOf(asked, 'aspect_ratio', names.ratio).map(readWord),
    ...frames.map(({ value, at }) => ({ value: value.ratio, at })),
  ])
  const sizing = {
    ...checkDuration(duration, limits),
    resolution: checkResolution(resolution, limits, asked.isDraft),
    ratio: checkRatio(ratio, limits, asked.kind),
  }
  if (writesSize(limits) && wanSize(limits.form, sizing) === undefined) {
    throw unsupported(ratio?.at ?? 'aspect_ratio', `has no ${sizing.ratio} at ${sizing.resolution} on this model.`)
  }
  return sizing
}

/** The models whose vendor wants width and height: there is a size for each ratio, or there is none. */
export function writesSize({ form, kinds }: Pick<VideoLimits, 'form' | 'kinds'>): boolean {
  return (form === 'wan2.5' || form === 'wan2.6') && !kinds.includes('i2v')
}

function placesOf(asked: Asked, top: string | undefined, inParameters: readonly string[]): Given<Json>[] {
  const { body, parameters, flags, flagsAt } = asked
  const places = [
    ...(top === undefined ? [] : [{ value: body[top], at: top }]),
    ...inParameters.map((name) => ({ value: parameters[name], at: `parameters.${name}` })),
    ...inParameters.map((name) => ({ value: flags[name], at: flagsAt })),
  ]
  return places.flatMap(({ value, at }) => (isGiven(value) ? [{ value, at }] : []))
}

function readDuration({ value, at }: Given<Json>, form: VideoForm): Given<number> {
  // Kling itself spells seconds as a text.
  const seconds = form === 'kling' && typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value
  if (typeof seconds !== 'number' || !Number.isSafeInteger(seconds)) throw wrongType(at, 'whole seconds')
  return { value: seconds, at }
}

function readWord({ value, at }: Given<Json>): Given<string> {
  if (typeof value !== 'string') throw wrongType(at, 'a string')
  return { value: value.trim().toLowerCase(), at }
}

/** Kling's modes are its resolutions. */
function readMode({ mode }: JsonObject, form: VideoForm): Given<string>[] {
  if (form !== 'kling' || (mode !== 'std' && mode !== 'pro')) return []
  return [{ value: mode === 'pro' ? '1080p' : '720p', at: 'parameters.mode' }]
}

function readSize(value: Json, at: string, { form, resolutions }: VideoLimits): Given<Frame> {
  if (!form.startsWith('wan')) throw unsupported(at, "is not for this model: it takes 'resolution' and 'aspect_ratio'.")
  if (typeof value !== 'string') throw wrongType(at, 'a string')
  const frame = wanFrame(form, value)
  if (frame === undefined) throw notOneOf(at, value, wanSizes(form, resolutions))
  return { value: frame, at }
}

function checkDuration(given: Given<number> | undefined, limits: VideoLimits) {
  const { durations, durationFree, durationDefault } = limits
  const longest = Math.max(...durations)
  if (given === undefined) return { seconds: durationDefault, isFreeLength: false }
  if (given.value === -1 && durationFree) return { seconds: longest, isFreeLength: true }
  if (durations.includes(given.value)) return { seconds: given.value, isFreeLength: false }
  const least = Math.min(...durations)
  const isSpan = durations.length > 2 && durations.length === longest - least + 1
  const choices = isSpan ? [`${least} to ${longest}`] : durations
  throw notOneOf(given.at, given.value, durationFree ? [...choices, -1] : choices)
}

const draftResolution = '480p'

function checkResolution(given: Given<string> | undefined, limits: VideoLimits, isDraft: boolean): string {
  const choices = isDraft ? limits.resolutions.filter((one) => one === draftResolution) : limits.resolutions
  if (given === undefined) return isDraft ? draftResolution : limits.resolutionDefault
  if (choices.includes(given.value)) return given.value
  throw notOneOf(given.at, given.value, choices)
}

const ratioPattern = /^(?:[1-9]\d?:[1-9]\d?|adaptive)$/

/** Without a list of ratios the picture decides: what the client says of it has no effect, as with its default. */
function checkRatio(given: Given<string> | undefined, { ratios }: VideoLimits, kind: VideoKind): string {
  if (given === undefined) return ratioDefault(ratios, kind)
  if (ratios.length === 0) {
    if (ratioPattern.test(given.value)) return given.value
    throw badRequest(`Invalid '${given.at}': expected a ratio such as 16:9.`, given.at)
  }
  if (ratios.includes(given.value)) return given.value
  throw notOneOf(given.at, given.value, ratios)
}

/** The specification's 16:9; but a picture to start from is not cut where the model can follow it. */
function ratioDefault(ratios: readonly string[], kind: VideoKind): string {
  if (kind === 'i2v' && ratios.includes('adaptive')) return 'adaptive'
  return ratios.length === 0 || ratios.includes('16:9') ? '16:9' : (ratios[0] ?? '16:9')
}
