import { badRequest, missing, unknownField, type VendorError } from '../chat/errors.ts'
import type { Fields } from '../fields.ts'
import { readForm } from '../files/form.ts'
import { type ImageHeader, readImageHeader } from '../files/image-header.ts'
import { commonDialect } from '../media/common.ts'
import type { Endpoint } from '../serve.ts'
import type { Call } from '../protocol.ts'
import { type Edited, type ImageAsk, readAsk } from './ask.ts'
import { familyOf } from './families.ts'
import { makeImages } from './make.ts'

type Upload = { readonly type: string; readonly bytes: Uint8Array }
type Form = { readonly fields: Fields; readonly images: readonly Upload[]; readonly mask: Upload | undefined }

/** `POST /images/edits`: a form with images in it. */
export const imageEdits: Endpoint<Form, ImageAsk, VendorError> = {
  dialect: commonDialect,
  capabilities: ['edits'],
  async open(call) {
    const form = await readEdit(call)
    if (typeof form.fields.model !== 'string') throw badRequest('you must provide a model parameter', null)
    return { model: form.fields.model, body: form }
  },
  read: ({ fields, images, mask }, model) =>
    readAsk(fields, model, readEdited(images, mask, fields, model.model), ['input_fidelity']),
  make: (ask, call) => makeImages(ask, call, 'image_edit'),
}

async function readEdit(call: Call): Promise<Form> {
  const contentType = call.request.headers.get('content-type') ?? ''
  if (!contentType.startsWith('multipart/form-data')) {
    throw badRequest(`Invalid Content-Type header (${contentType}), expected multipart/form-data.`, null)
  }
  const form = await readForm(call)
  if (!form) throw badRequest('Could not parse multipart form.', null)
  const fields: Record<string, unknown> = {}
  const images: Upload[] = []
  let mask: Upload | undefined
  for (const [name, value] of form) {
    if (typeof value === 'string') fields[name] = plainValue(name, value)
    else {
      const upload = { type: value.type.split(';')[0] ?? '', bytes: new Uint8Array(await value.arrayBuffer()) }
      if (name === 'image' || name === 'image[]') images.push(upload)
      else if (name === 'mask') mask = upload
      else throw unknownField(name)
    }
  }
  return { fields, images, mask }
}

const numbers = new Set(['n', 'partial_images', 'output_compression'])

/** Numbers and booleans arrive as text, and so does a prompt that looks like one. */
function plainValue(name: string, text: string): string | number | boolean {
  if (name === 'stream' && (text === 'true' || text === 'false')) return text === 'true'
  return numbers.has(name) && /^\d{1,9}$/.test(text) ? Number(text) : text
}

const uploadBytesMax = 50 * 1024 * 1024
const maskBytesMax = 4 * 1024 * 1024
const mimeTypes = new Set(['image/jpeg', 'image/png', 'image/webp'])

function readEdited(images: readonly Upload[], mask: Upload | undefined, fields: Fields, model: string): Edited {
  const { imagesMax, sold } = familyOf(model)
  if (images.length > imagesMax) {
    const message = `Invalid 'image': array too long. Expected an array with maximum length ${imagesMax}, but got an array with length ${images.length} instead.`
    throw badRequest(message, 'image', 'array_above_max_length')
  }
  const headers = images.map(readUpload)
  const [first] = headers
  if (first === undefined) throw missing('image')
  if (sold === 'pieces') checkPlainPng(first, images)
  if (mask) checkMask(mask, first)
  const isFaithful = fields.input_fidelity === 'high'
  return {
    size: first,
    imageTokens: headers.reduce((sum, header) => sum + visionTokens(header, isFaithful), 0),
    label: headers.map(({ width, height, format }) => `${format} ${width}x${height}`).join(),
  }
}

function readUpload({ type, bytes }: Upload, index: number): ImageHeader {
  if (!mimeTypes.has(type)) {
    const message = `Invalid file 'image[${index}]': unsupported mimetype ('${type}'). Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'.`
    throw badRequest(message, 'image', 'unsupported_file_mimetype')
  }
  const header = readImageHeader(bytes)
  if (header && bytes.length < uploadBytesMax) return header
  const message = `Invalid image file or mode for image ${index + 1}, please check your image file.`
  throw badRequest(message, 'image', 'invalid_image_file')
}

/** dall-e-2 takes only a square PNG. */
function checkPlainPng({ format, width, height }: ImageHeader, [upload]: readonly Upload[]): void {
  if (format !== 'png' || (upload?.bytes.length ?? 0) >= maskBytesMax) {
    throw badRequest('Uploaded image must be a PNG and less than 4 MB.', 'image')
  }
  if (width !== height) throw badRequest('Uploaded image must be square.', 'image')
}

const badMask = (why: string): VendorError =>
  badRequest(`Invalid mask image format - ${why}`, 'mask', 'invalid_mask_image_format')

function checkMask({ bytes }: Upload, image: ImageHeader): void {
  const mask = readImageHeader(bytes)
  if (mask?.format !== 'png' || bytes.length >= maskBytesMax) throw badMask('mask must be a PNG and less than 4 MB')
  if (mask.width !== image.width || mask.height !== image.height) throw badMask('mask size does not match image size')
  if (!mask.hasAlpha) throw badMask('mask image missing alpha channel')
}

/**
 * 65 tokens, plus 129 per 512-pixel tile once the short side is scaled down to 512, plus more for high input fidelity.
 */
function visionTokens({ width, height }: ImageHeader, isFaithful: boolean): number {
  const scale = Math.min(1, 512 / Math.min(width, height))
  const tiles = Math.ceil((width * scale) / 512) * Math.ceil((height * scale) / 512)
  return 65 + 129 * tiles + (isFaithful ? (width === height ? 4160 : 6240) : 0)
}
