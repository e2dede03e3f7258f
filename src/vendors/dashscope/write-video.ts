import { withoutNull, type JsonObject } from '../../base/json.ts'
import type { VideoForm } from '../../capabilities/limits.ts'
import type { VideoAsk } from '../../capabilities/video.ts'
import { writesSize } from '../../wire/native/video-sizing.ts'
import { wanSize } from '../../wire/native/wan-sizes.ts'
import { refuseUnknown, seedanceOnly, seldomKnown } from '../video-foreign.ts'

/** Versions whose `input` the client writes as the vendor reads it. */
const nativeForms: ReadonlySet<VideoForm> = new Set(['wan2.5', 'wan2.6', 'wan2.7'])

/** What the client wrote passes on; for the models after 2.7 it is written from what was understood. */
export function writeInput({ input, parameters, prompt, media, limits }: VideoAsk): JsonObject {
  const negative = input['negative_prompt'] ?? parameters['negative_prompt'] ?? undefined
  const said = { ...(prompt !== '' && { prompt }), ...(negative !== undefined && { negative_prompt: negative }) }
  if (nativeForms.has(limits.form)) return { ...withoutNull(input), ...said }
  const items = media.map(({ role, url }) => ({ type: role.replace('-', '_'), url }))
  return { ...said, ...(items.length > 0 && { media: items }) }
}

/** Words of other families, ours, and what stands in `input` here. */
const foreign: ReadonlySet<string> = new Set([...seldomKnown, 'sound', 'mode', 'negative_prompt'])

/** 2.7 cuts its shots itself. */
export function refuseGone(ask: VideoAsk): void {
  refuseUnknown(ask, [...seedanceOnly, 'mode', ...(ask.limits.form === 'wan2.7' ? ['shot_type'] : [])])
}

/** 2.7 always makes sound, which whoever asks for it has; asking it not to is refused before. */
const gone27: ReadonlySet<string> = new Set(['audio', 'shot_type'])

/** Each version has its own way to say how large: width and height, or a tier and perhaps a ratio. */
export function writeParameters(ask: VideoAsk): JsonObject {
  const { parameters, limits, seconds, isFreeLength, sound } = ask
  const isGone = (name: string) => foreign.has(name) || (limits.form === 'wan2.7' && gone27.has(name))
  const passed = Object.entries(parameters).filter(([name]) => !isGone(name))
  return {
    ...Object.fromEntries(passed),
    ...writeFrame(ask),
    duration: isFreeLength ? -1 : seconds,
    ...(limits.sound === 'optional' && { audio: sound }),
  }
}

function writeFrame({ limits, kind, resolution, ratio }: VideoAsk): JsonObject {
  if (writesSize(limits)) return { size: wanSize(limits.form, { resolution, ratio }) }
  const takesRatio = limits.ratios.length > 0 && kind !== 'i2v'
  return { resolution: resolution.toUpperCase(), ...(takesRatio && { ratio }) }
}
