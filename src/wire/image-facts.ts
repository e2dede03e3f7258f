import { badRequest, type GatewayError } from '../base/errors.ts'
import type { ImageHead } from '../base/image-head.ts'
import { whyNotGiven } from '../capabilities/given-image.ts'
import { boundOf, type Reference } from '../capabilities/image-tokens.ts'
import type { ImageAskBase } from '../capabilities/images.ts'
import type { ImageLimits, ModelTraits } from '../capabilities/limits.ts'
import { countText } from './estimate.ts'
import { invalid, unsupportedValue } from './issues.ts'

/** What a request asks for, in terms that all request forms share. */
export type Wished = Pick<
  ImageAskBase,
  'prompt' | 'count' | 'size' | 'quality' | 'background' | 'outputFormat' | 'delivery' | 'partialImages' | 'stream'
> & { readonly references: readonly Reference[]; readonly negativePrompt?: string | null | undefined }

/** The facts of an image request with the bound for its hold. Throws where the size and quality have no price. */
export function imageFacts(
  { references, negativePrompt, ...wished }: Wished,
  traits: ModelTraits,
  limits: ImageLimits,
): Omit<ImageAskBase, 'capability' | 'written'> {
  const sold = traits.sells('imageOutput') ? 'tokens' : 'pieces'
  if (sold === 'pieces' && !traits.sellsImage(wished.size, wished.quality)) {
    throw badRequest('This size and quality has no price on this model.', 'size', 'unsupported_value')
  }
  const text = promptWithAvoided({ prompt: wished.prompt, negativePrompt })
  return {
    ...wished,
    model: traits.id,
    limits,
    sold,
    textTokens: countText(text),
    bound: boundOf({ ...wished, sold, limits }, { promptBytes: Buffer.byteLength(text), references }),
  }
}

/** For vendors without a negative prompt: appends it to the prompt after the word `Avoid:`. */
export function promptWithAvoided({ prompt, negativePrompt }: Pick<Wished, 'prompt' | 'negativePrompt'>): string {
  return negativePrompt ? `${prompt}\n\nAvoid: ${negativePrompt}` : prompt
}

/** Input tokens for the key's token limit; models priced per image count none. */
export function estimateInput({ sold, textTokens }: Pick<ImageAskBase, 'sold' | 'textTokens'>): number {
  return sold === 'tokens' ? textTokens : 0
}

export function imageLimitsOf({ images, id }: ModelTraits): ImageLimits {
  if (images === undefined) throw new Error(`${id} makes images and has no limits`)
  return images
}

/** Throws where the request has more or fewer reference images than the model takes. */
export function checkReferences(given: number, { references: { min, max } }: ImageLimits, param: string): void {
  if (given >= min && given <= max) return
  throw badRequest(`${wanted(min, max)}, but ${given === 0 ? 'none was' : `${given} were`} given.`, param)
}

function wanted(min: number, max: number): string {
  if (max === 0) return 'This model takes no reference images'
  return min === 0
    ? `This model takes at most ${max} reference images`
    : `This model needs ${min} to ${max} reference images`
}

/** The common protocol's older names for two qualities. */
const aliases: Readonly<Record<string, string>> = { standard: 'medium', hd: 'high' }

/** One of the model's own qualities, or undefined where the model does not let the client choose. */
export function readQuality(given: string | undefined, { qualities }: ImageLimits): string | undefined {
  if (qualities.length === 0) return undefined
  if (given === undefined) return qualities.length === 1 ? qualities[0] : undefined
  if (qualities.includes(given)) return given
  const meant = aliases[given] ?? given
  if (qualities.includes(meant)) return meant
  // A model with a single quality uses it for `auto` too.
  if (given === 'auto' && qualities.length === 1) return qualities[0]
  throw unsupported('quality', given, qualities)
}

export function unsupported(param: string, value: string, values: readonly string[]): GatewayError {
  const list = values.map((each) => `'${each}'`).join(', ')
  return unsupportedValue(param, `'${value}'`, `Supported values are: ${list}.`)
}

/** The head of an image that the client gave; throws where the image cannot be used. */
export function checkImageHead(head: ImageHead | 'broken' | undefined, param: string): ImageHead {
  if (head === undefined) throw invalid(param, 'an image is a PNG, JPEG or WebP file', 'invalid_image_format')
  if (head === 'broken') throw invalid(param, 'the file is damaged', 'invalid_image')
  const why = whyNotGiven(head)
  if (why !== undefined) throw invalid(param, why, 'invalid_image')
  return head
}
