import { badRequest } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { IsOwnLink } from '../../base/untrusted-url.ts'
import type { VideoLimits } from '../../capabilities/limits.ts'
import { unsupported } from './video-fields.ts'
import { readMediaScene } from './video-media.ts'
import { countOf, type Placed, type Scene } from './video-scene.ts'

/** Runway takes a text, a first frame, or a video to edit. Anything else the vendor would drop or refuse. */
export function readRunwayScene(input: JsonObject, limits: VideoLimits, isOwn: IsOwnLink): Scene {
  const scene = readMediaScene(input, limits, isOwn, checkPlaced)
  if (scene.kind === 'r2v' && countOf(scene.media, 'reference-video') === 0) {
    throw badRequest('This model needs a reference_video.', 'input.media', 'missing_required_parameter')
  }
  return scene
}

function checkPlaced(placed: readonly Placed[]): void {
  for (const { role, url, at } of placed) {
    if (role === 'last-frame') throw unsupported(at, 'is not supported by this model, which takes a first frame alone.')
    // In a list of media, the role is named by its type; the link stands beside it.
    if (!/^(?:https|data):/i.test(url))
      throw unsupported(at.replace(/\.type$/, '.url'), 'has to be https with this model.')
  }
}

const textRatios: readonly string[] = ['16:9', '9:16']

/** Runway makes only these two ratios from text; from an image it makes all that the model has. */
export function checkRunwayShape({ form }: VideoLimits, { kind }: Scene, ratio: string): void {
  if (form !== 'runway' || kind !== 't2v' || textRatios.includes(ratio)) return
  throw unsupported('aspect_ratio', `is ${textRatios.join(' or ')} without a first frame on this model.`)
}
