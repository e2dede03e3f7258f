import { type Fields, fieldsIn, isGiven, textIn } from '../fields.ts'
import { type Family, type Frame, framesOf, sizingOf, tiersOf } from './families.ts'
import { type Media, readMedia } from './media.ts'
import { mismatch, notOneOf, optionalBoolean, optionalInteger, optionalWord } from './rules.ts'

/** What determines the video, once every field has passed its check. */
export type Wish = Media & {
  readonly frame: Frame
  readonly seconds: number
  readonly sound: boolean
}

const seedMax = 2_147_483_647

/**
 * Reads `input` and `parameters` by the version's own rules, and throws at the first broken rule. Fields of other
 * versions are unknown and therefore ignored: a resolution where a size belongs yields the largest size.
 */
export function readWish(body: Fields, family: Family, headers: Headers): Wish {
  const input = fieldsIn(body.input)
  const parameters = fieldsIn(body.parameters)
  const mayReadStore = headers.get('x-dashscope-ossresourceresolve') === 'enable'
  const media = readMedia(input, family, mayReadStore)
  for (const name of ['prompt_extend', 'watermark']) optionalBoolean(parameters, name)
  optionalInteger(parameters, 'seed', family.version === '3.0' ? -1 : 0, seedMax)
  if (family.version === '2.6') optionalWord(parameters, 'shot_type', ['single', 'multi'])
  const isSilent = family.isFlash && optionalBoolean(parameters, 'audio') === false
  return {
    ...media,
    frame: sizingOf(family) === 'size' ? readSize(parameters, family) : readResolution(parameters, family, media),
    seconds: readSeconds(parameters, family, media.hasVideo),
    sound: !isSilent,
  }
}

function readSize({ size }: Fields, family: Family): Frame {
  const frames = framesOf(family)
  if (!isGiven(size)) return frames[0]
  const found = frames.find(({ width, height }) => size === `${width}*${height}`)
  if (found) return found
  const allowed = frames.map(({ width, height }) => `${width}*${height}`)
  throw mismatch(`The size does not match the allowed size ${allowed.join(',')}`)
}

function readResolution(parameters: Fields, family: Family, { hasFirstFrame }: Media): Frame {
  const words = tiersOf(family).map((tier) => `${tier}P`)
  const tier = optionalWord(parameters, 'resolution', words) ?? '1080P'
  const frames = framesOf(family).filter((frame) => `${frame.tier}P` === tier)
  const takesRatio = family.kind === 'any' || (family.version === '2.7' && family.kind !== 'i2v')
  const ratios = [...frames.map((frame) => frame.ratio), ...(family.kind === 'any' ? ['adaptive'] : [])]
  const asked = takesRatio ? optionalWord(parameters, 'ratio', ratios) : undefined
  // The first image decides the ratio if there is one. Images are not fetched, so all count as 16:9.
  const ratio = hasFirstFrame ? '16:9' : (asked ?? '16:9')
  return frames.find((frame) => frame.ratio === ratio) ?? frames[0] ?? framesOf(family)[0]
}

/** The duration that the model chooses if it may. */
const secondsChosen = 5

function readSeconds(parameters: Fields, { version, kind }: Family, hasVideo: boolean): number {
  if (version === '2.5') {
    const seconds = optionalInteger(parameters, 'duration', 1, 60) ?? 5
    if (seconds !== 5 && seconds !== 10) throw notOneOf('parameters.duration', ['5', '10'])
    return seconds
  }
  if (version === '3.0') {
    const seconds = parameters.duration === -1 ? secondsChosen : optionalInteger(parameters, 'duration', 2, 30)
    return seconds ?? secondsChosen
  }
  const isShort = kind === 'r2v' && (version === '2.6' || hasVideo)
  return optionalInteger(parameters, 'duration', 2, isShort ? 10 : 15) ?? 5
}

/** The prompt, which may hold steering words, and whether the vendor may extend it. */
export function promptOf(body: Fields): { readonly prompt: string; readonly isExtended: boolean } {
  return { prompt: textIn(fieldsIn(body.input).prompt), isExtended: fieldsIn(body.parameters).prompt_extend !== false }
}
