import type { IsOwnLink } from '../../base/untrusted-url.ts'
import { readBase64Head } from '../../base/image-head.ts'
import type { ReceivedRequest } from '../../capabilities/ask.ts'
import type { Reference } from '../../capabilities/image-tokens.ts'
import type { GivenImage, ImagesAsk } from '../../capabilities/images.ts'
import type { ImageLimits, ModelTraits } from '../../capabilities/limits.ts'
import { checkSpellingOf } from '../check-spelling.ts'
import { parseBy } from '../check.ts'
import { checkImageHead, checkReferences, imageLimitsOf, imageFacts, readQuality, unsupported } from '../image-facts.ts'
import { nearestSize, readSize, rulesOf, takesSize, whyNotFree, writeSize } from '../image-sizes.ts'
import { invalid } from '../issues.ts'
import { nativeSizes } from '../native/images-schema.ts'
import { isPublicLink } from '../public-link.ts'
import { requireModel } from '../require-model.ts'
import { refuseRerouting, reroutingFields } from '../rerouting.ts'
import { imagesRequest, type ImagesRequest } from './images-schema.ts'

const checkSpelling = checkSpellingOf([...Object.keys(imagesRequest.shape), ...reroutingFields])

/** The common form: a prompt, and what the images should be like. */
export function readAsk(
  { body }: ReceivedRequest,
  lookUp: (model: string) => ModelTraits,
  isOwn: IsOwnLink,
): ImagesAsk {
  const traits = lookUp(requireModel(body))
  checkSpelling(body)
  refuseRerouting(body)
  const request = parseBy(imagesRequest, body)
  const limits = imageLimitsOf(traits)
  const count = request.n ?? 1
  if (count > limits.countMax) {
    throw invalid('n', `this model makes at most ${limits.countMax} at once`, 'unsupported_value')
  }
  checkLooks(request, limits)
  const references = readReferences(request.image, isOwn)
  checkReferences(references.length, limits, 'image')
  const size = readWishedSize(request.size ?? undefined, limits)
  const quality = readQuality(request.quality ?? undefined, limits)
  const stream = request.stream ?? false
  const facts = imageFacts(
    {
      prompt: request.prompt,
      count,
      stream,
      // The events of a stream carry bytes.
      delivery: stream ? 'bytes' : deliveryOf(request.response_format, limits),
      partialImages: stream ? (request.partial_images ?? 0) : 0,
      references: references.map(({ size }) => size),
      negativePrompt: request.negative_prompt,
      ...(size !== undefined && { size }),
      ...(quality !== undefined && { quality }),
      ...(typeof request.background === 'string' && { background: request.background }),
      ...(typeof request.output_format === 'string' && { outputFormat: request.output_format }),
    },
    traits,
    limits,
  )
  const { negative_prompt: negativePrompt, seed, prompt_extend: extendsPrompt, watermark } = request
  return {
    ...facts,
    capability: 'images',
    form: 'common',
    written: body,
    references: references.map(({ media, at }) => ({ media, at })),
    ...(typeof negativePrompt === 'string' && negativePrompt !== '' && { negativePrompt }),
    ...(typeof seed === 'number' && { seed }),
    ...(typeof extendsPrompt === 'boolean' && { extendsPrompt }),
    ...(typeof watermark === 'boolean' && { watermark }),
  }
}

/** The common protocol's default is a link, unless the model always gives bytes. */
function deliveryOf(format: ImagesRequest['response_format'], { alwaysBytes }: ImageLimits): ImagesAsk['delivery'] {
  if (format === 'url') return 'url'
  return format === 'b64_json' || alwaysBytes ? 'bytes' : 'url'
}

function checkLooks({ background, output_format: format }: ImagesRequest, { alwaysBytes, formats }: ImageLimits): void {
  if (typeof format === 'string' && formats?.includes(format) === false) {
    throw unsupported('output_format', format, formats)
  }
  if (background !== 'transparent') return
  if (!alwaysBytes) throw unsupported('background', background, ['auto', 'opaque'])
  checkTransparent(background, format ?? undefined)
}

export function checkTransparent(background: string | undefined, format: string | undefined): void {
  if (background !== 'transparent' || format !== 'jpeg') return
  throw invalid('background', "'transparent' needs an 'output_format' of png or webp")
}

/** The sizes that every client of the common protocol may ask for, including those of the specification. */
const usualSizes: ReadonlySet<string> = new Set([
  '1024x1024',
  '1536x1024',
  '1024x1536',
  ...nativeSizes.map((size) => size.replace('*', 'x')),
])

const tierSides: ReadonlyMap<string, number> = new Map([
  ['1K', 1024],
  ['2K', 2048],
  ['3K', 3072],
  ['4K', 4096],
])

/** A size that the model has, or the nearest to a usual size that it lacks; any other is refused. */
function readWishedSize(text: string | undefined, limits: ImageLimits): string | undefined {
  const { sizes, sizeDefault, free } = limits
  if (text === undefined) return sizeDefault
  if (text === 'auto') return sizes.includes('auto') ? 'auto' : sizeDefault
  const side = tierSides.get(text)
  const size = side === undefined ? readSize(text) : { width: side, height: side }
  if (size === undefined) throw refusedSize(text, limits)
  const spelled = writeSize(size)
  if (sizes.includes(spelled) || !takesSize(limits)) return spelled
  const why = free === undefined ? undefined : whyNotFree(size, free)
  if (free !== undefined && why === undefined) return spelled
  // A model whose sides go in steps documents them, so a side between the steps is a mistake and is not rounded.
  const isStepped = free !== undefined && free.step > 1
  if (usualSizes.has(spelled) && !isStepped) return nearestSize(size, limits)
  throw refusedSize(text, limits, why)
}

function refusedSize(text: string, { sizes, free }: ImageLimits, why?: string) {
  if (why !== undefined) return invalid('size', `'${text}' is not possible: ${why}`)
  if (sizes.length > 0 && free === undefined) return unsupported('size', text, sizes)
  const words = sizes.includes('auto') ? "WIDTHxHEIGHT or 'auto'" : 'WIDTHxHEIGHT'
  const rules = free === undefined ? '' : rulesOf(free)
  return invalid('size', `'${text}' is not ${words}${rules === '' ? '' : `: ${rules}`}`)
}

const dataUrl = /^data:image\/[\w.+-]+;base64,([A-Za-z0-9+/]+={0,2})$/

type Given = GivenImage & { readonly size: Reference }

function readReferences(image: ImagesRequest['image'], isOwn: IsOwnLink): Given[] {
  const images = typeof image === 'string' ? [image] : (image ?? [])
  return images.map((source, index) => {
    const param = typeof image === 'string' ? 'image' : `image[${index}]`
    const base64 = dataUrl.exec(source)?.[1]
    if (base64 !== undefined) return readInline(base64, param)
    const isTaken = isPublicLink(source, 'https-and-http') || isOwn(source)
    if (isTaken) return { media: { kind: 'url', url: source }, at: param, size: undefined }
    throw invalid(param, 'expected a publicly reachable URL, or a data URL of an image', 'invalid_url')
  })
}

/** The header tells the type, whatever the client calls it; the rules are those for a file. */
function readInline(base64: string, param: string): Given {
  const head = checkImageHead(readBase64Head(base64), param)
  return { media: { kind: 'bytes', mediaType: head.mediaType, base64 }, at: param, size: head }
}
