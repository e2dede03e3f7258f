import type { JsonObject } from '../../base/json.ts'
import type { IsOwnLink } from '../../base/untrusted-url.ts'
import type { VideoLimits } from '../../capabilities/limits.ts'
import { missing } from '../issues.ts'
import { unsupported } from './video-fields.ts'
import { readMediaScene } from './video-media.ts'
import type { Placed, Scene } from './video-scene.ts'

/** Sora takes a text, and optionally a first frame. */
export function readSoraScene(input: JsonObject, limits: VideoLimits, isOwn: IsOwnLink): Scene {
  const scene = readMediaScene(input, limits, isOwn, checkPlaced)
  if (scene.prompt.trim() === '') throw missing('input.prompt')
  return scene
}

function checkPlaced(placed: readonly Placed[]): void {
  const last = placed.find(({ role }) => role === 'last-frame')
  if (last !== undefined) throw unsupported(last.at, 'is not supported by this model, which takes a first frame alone.')
}
