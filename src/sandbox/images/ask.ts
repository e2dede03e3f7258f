import { checkNumber } from '../chat/check-fields.ts'
import { badRequest, unknownField } from '../chat/errors.ts'
import { type Fields, isGiven } from '../fields.ts'
import type { ImageFormat, Size } from '../files/image.ts'
import { countTokens, oneOf, requiredText } from '../media/common.ts'
import type { ServedAsk } from '../serve.ts'
import type { SandboxModel } from '../model.ts'
import { hashText } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { type Family, familyOf } from './families.ts'
import { readSize } from './size.ts'

/** Images to make, from a prompt alone or from other images. */
export type ImageAsk = ServedAsk & {
  readonly family: Family
  readonly count: number
  readonly size: Size
  readonly quality: string
  readonly background: string
  readonly format: ImageFormat
  readonly delivery: 'b64_json' | 'url'
  readonly isStreaming: boolean
  readonly partialImages: number
  readonly textTokens: number
  readonly imageTokens: number
  readonly seed: number
}

/** What an edit brings besides its fields. */
export type Edited = { readonly size: Size; readonly imageTokens: number; readonly label: string }

/** `extra` lists the parameters that only edits take. */
export function readAsk(body: Fields, model: SandboxModel, edited?: Edited, extra: readonly string[] = []): ImageAsk {
  const family = familyOf(model.model)
  const other = Object.keys(body).find((name) => family.fields && ![...family.fields, ...extra].includes(name))
  if (other !== undefined) throw unknownField(other)
  const prompt = requiredText(body, 'prompt', family.promptCharactersMax)
  if (isGiven(body.n)) checkNumber('n', body.n, { whole: true, least: 1, most: family.countMax })
  if (isGiven(body.partial_images))
    checkNumber('partial_images', body.partial_images, { whole: true, least: 0, most: 3 })
  const format = oneOf(body, 'output_format', ['png', 'jpeg', 'webp'])
  const quality = oneOf(body, 'quality', family.qualities)
  oneOf(body, 'moderation', ['auto', 'low'])
  const isStreaming = body.stream === true && family.sold === 'tokens'
  return {
    model,
    steering: readSteering(prompt),
    family,
    count: typeof body.n === 'number' ? body.n : 1,
    size: readSize(body, family, edited?.size),
    quality: quality === 'auto' ? 'medium' : quality,
    background: readBackground(body, format),
    format,
    delivery: family.sold === 'tokens' ? 'b64_json' : oneOf(body, 'response_format', ['url', 'b64_json']),
    isStreaming,
    partialImages: isStreaming && typeof body.partial_images === 'number' ? body.partial_images : 0,
    textTokens: countTokens(prompt),
    imageTokens: edited?.imageTokens ?? 0,
    seed: hashText(`${prompt}\n${edited?.label ?? ''}`),
  }
}

function readBackground(body: Fields, format: ImageFormat): string {
  const background = oneOf(body, 'background', ['auto', 'transparent', 'opaque'])
  if (background === 'transparent' && format === 'jpeg') {
    const message = 'Transparent background is not supported for JPEG output format.'
    throw badRequest(message, 'background', 'invalid_value')
  }
  const { output_compression: compression } = body
  if (isGiven(compression)) {
    checkNumber('output_compression', compression, { whole: true, least: 0, most: 100 })
    if (format === 'png' && compression !== 100) {
      const message = 'Compression less than 100 is not supported for PNG output format.'
      throw badRequest(message, 'output_compression', 'invalid_value')
    }
  }
  return background === 'transparent' ? background : 'opaque'
}
