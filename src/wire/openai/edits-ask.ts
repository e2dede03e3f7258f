import { badRequest } from '../../base/errors.ts'
import type { ReceivedRequest } from '../../capabilities/ask.ts'
import type { EditsAsk } from '../../capabilities/images.ts'
import type { ImageLimits, ModelTraits } from '../../capabilities/limits.ts'
import { parseBy } from '../check.ts'
import { imageLimitsOf, imageFacts, readQuality, unsupported } from '../image-facts.ts'
import { invalid } from '../issues.ts'
import { requireModel } from '../require-model.ts'
import { refuseRerouting } from '../rerouting.ts'
import { isFileField, readEditFiles } from './edits-files.ts'
import { checkTransparent } from './images-ask.ts'
import { editsFields, type EditsFields } from './images-schema.ts'

/** An edit: a form of files and text fields. */
export function readAsk({ body, files }: ReceivedRequest, lookUp: (model: string) => ModelTraits): EditsAsk {
  // Python's requests sends every part of `files` as a file, also texts.
  const misplaced = files.find(({ field }) => Object.hasOwn(editsFields.shape, field))
  if (misplaced !== undefined) throw invalid(misplaced.field, 'expected text, but got a file', 'invalid_type')
  const traits = lookUp(requireModel(body))
  const written = Object.keys(body).find(isFileField)
  if (written !== undefined) throw invalid(written, 'expected a file', 'invalid_type')
  refuseRerouting(body)
  const fields = parseBy(editsFields, body)
  const limits = imageLimitsOf(traits)
  if (limits.edits === undefined) throw new Error(`${traits.id} does edits and has no limits for them`)
  const { images, mask } = readEditFiles(files, limits.edits)
  checkLooks(fields, limits)
  const count = fields.n ?? 1
  if (count > limits.countMax) throw invalid('n', `this model makes at most ${limits.countMax}`)
  const size = readEditSize(fields.size, limits)
  const quality = readQuality(fields.quality, limits)
  const stream = fields.stream ?? false
  const facts = imageFacts(
    {
      prompt: fields.prompt,
      count,
      stream,
      delivery: stream || limits.alwaysBytes || fields.response_format !== 'url' ? 'bytes' : 'url',
      partialImages: stream ? (fields.partial_images ?? 0) : 0,
      references: mask === undefined ? images : [...images, mask],
      ...(size !== undefined && { size }),
      ...(quality !== undefined && { quality }),
      ...(fields.background !== undefined && limits.alwaysBytes && { background: fields.background }),
      ...(fields.output_format !== undefined && { outputFormat: fields.output_format }),
    },
    traits,
    limits,
  )
  return { ...facts, capability: 'edits', written: body, images, ...(mask !== undefined && { mask }) }
}

function checkLooks({ background, output_format: format }: EditsFields, limits: ImageLimits): void {
  checkTransparent(background, format)
  if (limits.alwaysBytes) return
  // Where the model's formats are unknown, the vendor judges.
  if (format !== undefined && limits.formats !== undefined) {
    const message = "'output_format' is not supported by this model."
    throw badRequest(message, 'output_format', 'unsupported_value')
  }
  if (background === 'transparent') throw unsupported('background', background, ['auto', 'opaque'])
}

/** Only the sizes of this path; larger images are made on `/v1/images/generations`. */
function readEditSize(given: string | undefined, { edits, sizeDefault }: ImageLimits): string | undefined {
  const sizes = edits?.sizes ?? []
  if (given === undefined || given === 'auto') return sizes.includes('auto') ? 'auto' : sizeDefault
  if (sizes.includes(given)) return given
  throw unsupported('size', given, ['auto', ...sizes.filter((size) => size !== 'auto')])
}
