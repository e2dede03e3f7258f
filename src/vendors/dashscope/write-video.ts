import { withoutNull, type JsonObject } from '../../base/json.ts'
import type { VideoAsk } from '../../capabilities/video.ts'
import { parameterAt, unsupported } from '../../wire/native/video-fields.ts'
import { writesSize } from '../../wire/native/video-sizing.ts'
import { isWanVersion } from '../../wire/native/video-wan.ts'
import { wanSize } from '../../wire/native/wan-sizes.ts'
import { gatewayParameters, refuseUnknown, seedanceOnly } from '../video-foreign.ts'

/** The client's input passes on as written; for models after 2.7 it is written from what the gateway read out of it. */
export function writeInput({ input, parameters, prompt, media, limits }: VideoAsk): JsonObject {
  const negative = input['negative_prompt'] ?? parameters['negative_prompt'] ?? undefined
  const said = { ...(prompt !== '' && { prompt }), ...(negative !== undefined && { negative_prompt: negative }) }
  if (isWanVersion(limits.form)) return { ...withoutNull(input), ...said }
  const items = media.map(({ role, url }) => ({ type: role.replace('-', '_'), url }))
  return { ...said, ...(items.length > 0 && { media: items }) }
}

const unknown = [...seedanceOnly, 'mode']

/** Not passed on as given: parameters of other families, our own, and those that belong into `input` here. */
const foreign: ReadonlySet<string> = new Set([...unknown, ...gatewayParameters, 'sound', 'negative_prompt'])

export function refuseUnsupported(ask: VideoAsk): void {
  const { parameters, limits, kind } = ask
  const isMulti = parameters['shot_type'] === 'multi'
  // Wan 2.5 always makes one shot, and Wan 2.7 chooses its shots itself.
  const isShotless = limits.form === 'wan2.7' || (limits.form === 'wan2.5' && isMulti)
  refuseUnknown(ask, [...unknown, ...(isShotless ? ['shot_type'] : [])])
  // Wan 2.6 divides a prompt into shots while it extends it. Its r2v has shots without `prompt_extend`.
  if (isMulti && limits.form === 'wan2.6' && kind !== 'r2v' && parameters['prompt_extend'] === false) {
    throw unsupported(parameterAt(ask, 'shot_type'), "has no effect without 'prompt_extend'.")
  }
}

/** Wan 2.7 always makes audio: asking for it changes nothing, and asking for none has been refused before. */
const gone27: ReadonlySet<string> = new Set(['audio', 'shot_type'])

/** Each version states the size in its own way: as width and height, or as a tier and perhaps a ratio. */
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
