import { badRequest, type GatewayError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { VideoKind, VideoLimits } from '../../capabilities/limits.ts'
import type { VideoMedia, VideoRole } from '../../capabilities/video.ts'
import { unsupported } from './video-fields.ts'

/** What a request shows the model, read from the fields that its form has for this. */
export type Scene = {
  readonly kind: VideoKind
  readonly prompt: string
  readonly media: readonly VideoMedia[]
  readonly draftOf?: string
  readonly draftAt?: string
  /** Flags in the prompt, which the vendor would read as if they were fields of the body. */
  readonly flags: JsonObject
  /** Where the flag for this field was written. */
  flagAt(field: string): string
}

/** A medium with its role, and the field to name in an error about it. */
export type Placed = VideoMedia & { readonly at: string }

export function scene(kind: VideoKind, prompt: string, placed: readonly Placed[]): Scene {
  const media = placed.map(({ role, url }) => ({ role, url }))
  return { kind, prompt, media, flags: {}, flagAt: () => 'input.prompt' }
}

/** The names of roles in a list of media, as the specification and the vendor write them. */
export const roleNames = {
  first_frame: 'first-frame',
  last_frame: 'last-frame',
  first_clip: 'first-clip',
  driving_audio: 'driving-audio',
  reference_image: 'reference-image',
  reference_video: 'reference-video',
  reference_audio: 'reference-audio',
} as const satisfies Readonly<Record<string, VideoRole>>

export type RoleName = keyof typeof roleNames

export function isRoleName(name: string): name is RoleName {
  return Object.hasOwn(roleNames, name)
}

export const countOf = (placed: readonly VideoMedia[], role: VideoRole): number =>
  placed.filter((one) => one.role === role).length

const framing: ReadonlySet<VideoRole> = new Set(['first-frame', 'last-frame'])
const referring: ReadonlySet<VideoRole> = new Set(['reference-image', 'reference-video', 'reference-audio'])

/**
 * A request is one of three kinds: from text alone, from a first frame and perhaps a last one, or from references. Some
 * models do several kinds.
 */
export function kindOf(placed: readonly Placed[], limits: VideoLimits, at: string): VideoKind {
  const frame = placed.find(({ role }) => framing.has(role))
  const reference = placed.find(({ role }) => referring.has(role))
  if (frame !== undefined && reference !== undefined) {
    throw badRequest('First and last frames cannot be mixed with references.', reference.at)
  }
  const withoutReference = frame === undefined ? 't2v' : 'i2v'
  const kind = reference === undefined ? withoutReference : 'r2v'
  if (limits.kinds.includes(kind)) {
    if (kind === 'r2v') checkReferences(placed, limits, at)
    if (kind === 'i2v') checkFrames(placed, at)
    return kind
  }
  if (kind === 't2v') throw badRequest(`This model needs ${needs(limits)}.`, at, 'missing_required_parameter')
  throw unsupported(reference?.at ?? frame?.at ?? at, `is not supported by this model, which takes ${needs(limits)}.`)
}

function needs({ kinds }: VideoLimits): string {
  const words = { t2v: 'a prompt', i2v: 'a first frame', r2v: 'references' } as const
  return kinds.map((kind) => words[kind]).join(' or ')
}

function checkFrames(placed: readonly Placed[], at: string): void {
  for (const role of framing) {
    const [, second] = placed.filter((one) => one.role === role)
    if (second !== undefined) throw badRequest(`There can be only one ${spelled(role)}.`, second.at)
  }
  if (countOf(placed, 'first-frame') === 0) throw badRequest('A last_frame needs a first_frame.', at)
}

function checkReferences(placed: readonly Placed[], limits: VideoLimits, at: string): void {
  const most = [
    ['reference-image', limits.referencesMax],
    ['reference-video', limits.referenceVideosMax],
    ['reference-audio', limits.referenceAudiosMax],
  ] as const
  for (const [role, max] of most) {
    const excess = placed.filter((one) => one.role === role)[max]
    if (excess !== undefined) throw tooMany(role, max, excess.at)
  }
  if (countOf(placed, 'reference-audio') === placed.length) {
    throw badRequest('A reference_audio needs a reference_image or reference_video beside it.', at)
  }
}

export function tooMany(role: VideoRole, max: number, at: string): GatewayError {
  const message =
    max === 0 ? `This model takes no ${spelled(role)}.` : `This model takes at most ${max} ${spelled(role)}s.`
  return badRequest(message, at, 'unsupported_value')
}

function spelled(role: VideoRole): string {
  return role.replace('-', '_')
}
