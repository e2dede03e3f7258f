import { badRequest, type GatewayError } from '../../base/errors.ts'
import { isWhole, pngHasAlpha, readImageHead, type ImageHead } from '../../base/image-head.ts'
import type { AskedFile } from '../../capabilities/ask.ts'
import type { ImageFile } from '../../capabilities/images.ts'
import type { ImageLimits } from '../../capabilities/limits.ts'
import { checkImageHead } from '../image-facts.ts'
import { invalid, missing } from '../issues.ts'

export type EditFiles = { readonly images: readonly ImageFile[]; readonly mask?: ImageFile }

type EditLimits = NonNullable<ImageLimits['edits']>

/** The common protocol's own limit. */
const maskBytesMax = 4 * 1024 * 1024
const notWhole = 'the file is damaged, or breaks off before its end'

/** Several images repeat `image` or `image[]`, or number the field, as PHP's cURL has to: `image[0]`. */
const imageField = /^image(?:\[\d*\])?$/

/** Whether the field of this name has to be a file. */
export function isFileField(name: string): boolean {
  return name === 'mask' || imageField.test(name)
}

/** The files of an edit. Each is identified by its header, not by what the client says of it. Nothing is decoded. */
export function readEditFiles(files: readonly AskedFile[], limits: EditLimits): EditFiles {
  const unknown = files.find(({ field }) => !isFileField(field))
  if (unknown !== undefined) {
    throw badRequest(`Unknown parameter: '${unknown.field}'.`, unknown.field, 'unknown_parameter')
  }
  const images = files.filter(({ field }) => field !== 'mask').map(readImage)
  const [first] = images
  if (first === undefined) throw missing('image')
  if (images.length > limits.references.max) {
    throw invalid('image', `this model takes at most ${limits.references.max}, but ${images.length} were given`)
  }
  const [mask, second] = files.filter(({ field }) => field === 'mask')
  if (second !== undefined) throw invalid('mask', 'it was given twice')
  return { images, ...(mask !== undefined && { mask: readMask(mask, first, limits) }) }
}

function readImage(file: AskedFile, index: number): ImageFile {
  const head = checkImageHead(readImageHead(file.bytes), 'image')
  if (!isWhole(file.bytes, head)) throw invalid('image', notWhole, 'invalid_image')
  return imageFile(file, head, `image-${index + 1}`)
}

function readMask(file: AskedFile, image: ImageFile, { mask: isTaken }: EditLimits): ImageFile {
  if (!isTaken) throw badMask('this model takes none')
  const head = readImageHead(file.bytes)
  if (head === undefined || head === 'broken' || head.mediaType !== 'image/png') throw badMask('it is not a PNG file')
  if (file.bytes.length > maskBytesMax) throw badMask(`it is larger than ${maskBytesMax} bytes`)
  if (head.width !== image.width || head.height !== image.height) {
    const [given, wanted] = [head, image].map(({ width, height }) => `${width}x${height}`)
    throw badMask(`its size is ${given}, but that of the image is ${wanted}`)
  }
  if (!isWhole(file.bytes, head)) throw badMask(notWhole)
  if (!pngHasAlpha(file.bytes)) throw badMask('it has no transparency')
  return imageFile(file, head, 'mask')
}

function badMask(why: string): GatewayError {
  return invalid('mask', why, 'invalid_mask')
}

function imageFile({ bytes }: AskedFile, { mediaType, width, height }: ImageHead, stem: string): ImageFile {
  return { name: `${stem}.${mediaType.slice('image/'.length)}`, mediaType, width, height, bytes }
}
