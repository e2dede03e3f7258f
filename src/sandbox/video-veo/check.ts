import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { invalid } from '../gemini/errors.ts'

/** A checked request for a Veo video. */
export type Wish = {
  readonly prompt: string
  readonly resolution: '720p' | '1080p' | '4k'
  readonly aspectRatio: '16:9' | '9:16'
  readonly seconds: number
  readonly samples: number
}

type Facts = {
  readonly resolutions: readonly Wish['resolution'][]
  readonly seconds: readonly number[]
  readonly samplesMax: number
  readonly takesReferences: boolean
}

/** Veo 3.1 makes everything; its lite edition makes no 4k and takes no references. Veo 2 has a single resolution. */
function factsOf(model: string): Facts {
  if (model.startsWith('veo-2'))
    return { resolutions: ['720p'], seconds: [5, 6, 7, 8], samplesMax: 2, takesReferences: false }
  const isFull = model.startsWith('veo-3.1') && !model.includes('lite')
  const resolutions = isFull ? (['720p', '1080p', '4k'] as const) : (['720p', '1080p'] as const)
  return { resolutions, seconds: [4, 6, 8], samplesMax: 1, takesReferences: isFull }
}

const instanceFields: ReadonlySet<string> = new Set(['prompt', 'image', 'lastFrame', 'referenceImages', 'video'])
const parameterFields: ReadonlySet<string> = new Set([
  'aspectRatio',
  'resolution',
  'durationSeconds',
  'negativePrompt',
  'personGeneration',
  'sampleCount',
  'seed',
  'enhancePrompt',
])

export function readWish(body: Fields, model: string): Wish {
  const [instance, ...others] = itemsIn(body.instances).map(fieldsIn)
  if (!instance || others.length > 0) throw invalid('Only one instance is allowed per request.')
  const parameters = fieldsIn(body.parameters)
  refuseUnknown(instance, instanceFields)
  refuseUnknown(parameters, parameterFields)
  const facts = factsOf(model)
  const references = itemsIn(instance.referenceImages).map((item) => fieldsIn(item).image)
  if (references.length > 0 && !facts.takesReferences) throw unsupported('referenceImages')
  for (const image of [instance.image, instance.lastFrame, ...references])
    if (isGiven(image)) checkImage(fieldsIn(image))
  const prompt = textIn(instance.prompt)
  if (prompt === '' && !isGiven(instance.image)) throw invalid('The prompt cannot be empty.')

  const resolution = oneOf(parameters, 'resolution', facts.resolutions) ?? '720p'
  const seconds = numberOf(parameters, 'durationSeconds', facts.seconds) ?? 8
  if (seconds !== 8 && (resolution !== '720p' || references.length > 0)) {
    const reason = references.length > 0 ? 'reference images are given' : `the resolution is ${resolution}`
    throw invalid(`The \`durationSeconds\` must be 8 when ${reason}.`)
  }
  const counts = Array.from({ length: facts.samplesMax }, (_, index) => index + 1)
  return {
    prompt,
    resolution,
    aspectRatio: oneOf(parameters, 'aspectRatio', ['16:9', '9:16'] as const) ?? '16:9',
    seconds,
    samples: numberOf(parameters, 'sampleCount', counts) ?? 1,
  }
}

function unsupported(name: string): Error {
  return invalid(
    `\`${name}\` isn't supported by this model. Please remove it or refer to the Gemini API documentation for supported usage.`,
  )
}

function refuseUnknown(fields: Fields, known: ReadonlySet<string>): void {
  for (const name of Object.keys(fields)) if (!known.has(name)) throw unsupported(name)
}

/** The bytes come in a field of their own; chat's form for images is refused. */
function checkImage(image: Fields): void {
  if (isGiven(image.inlineData)) throw unsupported('inlineData')
  if (textIn(image.bytesBase64Encoded) === '') throw invalid('Image must have either `bytesBase64Encoded` or `gcsUri`.')
  if (textIn(image.mimeType) === '')
    throw invalid(
      'Input instance with `image` should contain both `bytesBase64Encoded` and `mimeType` in valid fields.',
    )
}

function oneOf<Word extends string>(parameters: Fields, name: string, words: readonly Word[]): Word | undefined {
  const value = parameters[name]
  if (!isGiven(value)) return undefined
  const found = words.find((word) => word === value)
  if (found !== undefined) return found
  throw invalid(`The string value for \`${name}\` is not supported. Please provide one of ${words.join(', ')}.`)
}

/** The vendor's message names the ends of the range even if not all values between them are allowed. */
function numberOf(parameters: Fields, name: string, allowed: readonly number[]): number | undefined {
  const value = parameters[name]
  if (!isGiven(value)) return undefined
  if (typeof value !== 'number') throw invalid(`The value type for \`${name}\` needs to be a number.`)
  if (allowed.includes(value)) return value
  throw invalid(
    `The number value for \`${name}\` is out of bound. Please provide a value between ${allowed[0]} and ${allowed.at(-1)}, inclusive.`,
  )
}
