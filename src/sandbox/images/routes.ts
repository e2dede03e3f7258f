import type { VendorError } from '../chat/errors.ts'
import type { Fields } from '../fields.ts'
import { commonDialect, openJson } from '../media/common.ts'
import { endpointAt, type Endpoint } from '../serve.ts'
import type { Protocol } from '../protocol.ts'
import { type ImageAsk, readAsk } from './ask.ts'
import { imageEdits } from './edit.ts'
import { makeImages } from './make.ts'

const imageGenerations: Endpoint<Fields, ImageAsk, VendorError> = {
  dialect: commonDialect,
  capabilities: ['images'],
  open: openJson,
  read: (body, model) => readAsk(body, model),
  make: (ask, call) => makeImages(ask, call, 'image_generation'),
}

/** OpenAI's protocol for images: made from a prompt, or from images and a prompt. */
export const imagesProtocol: Protocol = (vendor, root, world) => [
  ...endpointAt('/images/generations', imageGenerations)(vendor, root, world),
  ...endpointAt('/images/edits', imageEdits)(vendor, root, world),
]
