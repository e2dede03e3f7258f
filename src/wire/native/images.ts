import type { IsOwnLink } from '../../base/untrusted-url.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ReceivedRequest } from '../../capabilities/ask.ts'
import type { GivenImage, ImagesAnswer, ImagesAsk } from '../../capabilities/images.ts'
import type { ModelTraits } from '../../capabilities/limits.ts'
import { parseBy } from '../check.ts'
import { checkReferences, imageLimitsOf, imageFacts, readQuality } from '../image-facts.ts'
import { nearestSize, readSize } from '../image-sizes.ts'
import { invalid } from '../issues.ts'
import { isPublicLink } from '../public-link.ts'
import { requireModel } from '../require-model.ts'
import { nativeImagesRequest, type NativeImagesRequest } from './images-schema.ts'

const contentPath = 'input.messages[0].content'
/** The specification's default, for a request without a size. */
const sizeDefault = '1024*1024'

/** The multimodal form: one message of text and images, answered with one image. */
export function readAsk(
  { body }: ReceivedRequest,
  lookUp: (model: string) => ModelTraits,
  isOwn: IsOwnLink,
): ImagesAsk {
  const traits = lookUp(requireModel(body))
  const { input, parameters } = parseBy(nativeImagesRequest, body)
  const { texts, images } = readBlocks(input, isOwn)
  const limits = imageLimitsOf(traits)
  checkReferences(images.length, limits, contentPath)
  const wished = readSize(parameters?.size ?? sizeDefault, '*')
  const quality = readQuality(undefined, limits)
  const facts = imageFacts(
    {
      prompt: texts.join('\n'),
      count: 1,
      delivery: 'url',
      partialImages: 0,
      stream: false,
      references: images.map(() => undefined),
      negativePrompt: parameters?.negative_prompt,
      ...(wished !== undefined && { size: nearestSize(wished, limits) }),
      ...(quality !== undefined && { quality }),
    },
    traits,
    limits,
  )
  const { seed, watermark, negative_prompt: negativePrompt, prompt_extend: extendsPrompt } = parameters ?? {}
  return {
    ...facts,
    capability: 'images',
    form: 'native',
    written: {},
    references: images,
    ...(typeof seed === 'number' && { seed }),
    ...(typeof watermark === 'boolean' && { watermark }),
    ...(typeof negativePrompt === 'string' && negativePrompt !== '' && { negativePrompt }),
    ...(typeof extendsPrompt === 'boolean' && { extendsPrompt }),
  }
}

function readBlocks(
  { messages }: NativeImagesRequest['input'],
  isOwn: IsOwnLink,
): { texts: string[]; images: GivenImage[] } {
  const texts: string[] = []
  const images: GivenImage[] = []
  for (const [index, { text, image }] of (messages[0]?.content ?? []).entries()) {
    const path = `${contentPath}[${index}]`
    if ((text === undefined) === (image === undefined)) {
      throw invalid(path, "a block has either 'text' or 'image'")
    }
    if (text !== undefined) texts.push(text)
    if (image !== undefined) images.push(checkLink(image, `${path}.image`, isOwn))
  }
  if (texts.length === 0) throw invalid(contentPath, 'at least one text block is needed')
  return { texts, images }
}

function checkLink(link: string, path: string, isOwn: IsOwnLink): GivenImage {
  if (isPublicLink(link, 'https') || isOwn(link)) return { media: { kind: 'url', url: link }, at: path }
  throw invalid(path, 'an image is a publicly reachable https URL', 'invalid_url')
}

export function writeAnswer(answer: ImagesAnswer, requestId: string): JsonObject {
  const { images, width, height } = answer
  const content = images.flatMap(({ media }) => (media.kind === 'url' ? [{ image: media.url }] : []))
  return {
    request_id: requestId,
    output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content } }] },
    usage: {
      image_count: images.length,
      ...(height !== undefined && { height }),
      ...(width !== undefined && { width }),
    },
  }
}
