import type { Json } from '../../base/json.ts'
import type { VideoForm, VideoKind, VideoLimits } from '../../capabilities/limits.ts'
import { runwayRatio } from './runway-sizes.ts'
import { soraFrame, soraSizes } from './sora-sizes.ts'
import { agreed, type Given, notOneOf, type Places, refusal, unsupported, wrongType } from './video-fields.ts'
import { type Frame, wanFrame, wanSize, wanSizes } from './wan-sizes.ts'

/** The length and size of a video, which its price depends on. */
export type Sizing = {
  readonly seconds: number
  readonly isFreeLength: boolean
  readonly resolution: string
  readonly ratio: string
}

/** The names by which clients and vendors give each value. Adapters write the values anew, so none passes on. */
const names = {
  duration: ['duration', 'durationSeconds', 'seconds'],
  resolution: ['resolution'],
  ratio: ['aspect_ratio', 'ratio', 'aspectRatio'],
  size: ['size'],
} as const

export const sizingFields: ReadonlySet<string> = new Set(Object.values(names).flat())

type Asked = {
  /** Finds a field wherever the client may write it; see `placesIn`. */
  readonly places: Places
  readonly kind: VideoKind
  readonly isDraft: boolean
}

/** All values that the client gave have to agree, wherever they were written; defaults fill the rest. */
export function readSizing(asked: Asked, limits: VideoLimits): Sizing {
  const given = (fields: readonly string[]) => fields.flatMap((name) => asked.places(name))
  const frames = given(names.size).map(({ value, at }) => readSize(value, at, limits))
  const duration = agreed(given(names.duration).map((one) => readDuration(one, limits.form)))
  const resolution = agreed([
    ...given(names.resolution).map(readWord),
    ...given(['mode']).flatMap((one) => readMode(one, limits)),
    ...frames.map(({ value, at }) => ({ value: value.resolution, at })),
  ])
  const ratio = agreed([
    ...given(names.ratio).map((one) => readRatio(one, limits.form)),
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

/** Whether the vendor takes width and height, so that only the ratios in its table of sizes exist. */
export function writesSize({ form, kinds }: Pick<VideoLimits, 'form' | 'kinds'>): boolean {
  return (form === 'wan2.5' || form === 'wan2.6') && !kinds.includes('i2v')
}

function readDuration({ value, at }: Given<Json>, form: VideoForm): Given<number> {
  // Kling and Sora write seconds as a string.
  const isText = (form === 'kling' || form === 'sora') && typeof value === 'string'
  const seconds = isText && /^\d{1,3}$/.test(value) ? Number(value) : value
  if (typeof seconds !== 'number' || !Number.isSafeInteger(seconds)) throw wrongType(at, 'whole seconds')
  return { value: seconds, at }
}

function readWord({ value, at }: Given<Json>): Given<string> {
  if (typeof value !== 'string') throw wrongType(at, 'a string')
  return { value: value.trim().toLowerCase(), at }
}

/** Runway writes a ratio as its pixels. */
function readRatio(given: Given<Json>, form: VideoForm): Given<string> {
  const { value, at } = readWord(given)
  return { value: form === 'runway' ? runwayRatio(value) : value, at }
}

/** Kling's modes stand for resolutions. */
const modes: Readonly<Record<string, string>> = { std: '720p', pro: '1080p' }

function readMode({ value, at }: Given<Json>, { form, resolutions }: VideoLimits): Given<string>[] {
  if (form !== 'kling' || typeof value !== 'string') return []
  const resolution = modes[value]
  if (resolution === undefined) return []
  if (resolutions.includes(resolution)) return [{ value: resolution, at }]
  const sold = Object.entries(modes).flatMap(([mode, one]) => (resolutions.includes(one) ? [mode] : []))
  throw notOneOf(at, value, sold)
}

function readSize(value: Json, at: string, { form, resolutions }: VideoLimits): Given<Frame> {
  const isSora = form === 'sora'
  if (!isSora && !form.startsWith('wan')) {
    throw unsupported(at, "is not supported by this model: it takes 'resolution' and 'aspect_ratio'.")
  }
  if (typeof value !== 'string') throw wrongType(at, 'a string')
  const frame = isSora ? soraFrame(value) : wanFrame(form, value)
  if (frame === undefined || !resolutions.includes(frame.resolution)) {
    throw notOneOf(at, value, isSora ? soraSizes(resolutions) : wanSizes(form, resolutions))
  }
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

/** Without a list of ratios the input image decides the ratio, so the client's value is checked but has no effect. */
function checkRatio(given: Given<string> | undefined, { ratios }: VideoLimits, kind: VideoKind): string {
  if (given === undefined) return ratioDefault(ratios, kind)
  if (ratios.length === 0) {
    if (ratioPattern.test(given.value)) return given.value
    throw refusal(`Invalid '${given.at}': expected a ratio such as 16:9.`, given.at)
  }
  if (ratios.includes(given.value)) return given.value
  throw notOneOf(given.at, given.value, ratios)
}

/** The specification's default of 16:9, unless the model can follow a first frame, which is then not cropped. */
function ratioDefault(ratios: readonly string[], kind: VideoKind): string {
  if (kind === 'i2v' && ratios.includes('adaptive')) return 'adaptive'
  return ratios.length === 0 || ratios.includes('16:9') ? '16:9' : (ratios[0] ?? '16:9')
}
