import type { JsonObject } from '../../base/json.ts'
import type { Media, Placed } from '../../capabilities/conversation.ts'
import { typeToSend } from '../media-type.ts'
import { unsupportedBlock } from '../unsupported-block.ts'

/**
 * The URLs that the vendor itself reads: videos on YouTube. It reads its own stored files too, but those belong to the
 * operator: clients cannot upload any, and the videos made for other customers are among them.
 */
const readByVendor = /^https:\/\/(?:(?:www\.|m\.)?youtube\.com\/|youtu\.be\/)/

export function isReadByVendor(url: string): boolean {
  return readByVendor.test(url)
}

/**
 * Writes an image, audio, a video or a file as a part. URLs that the vendor does not read were replaced by their bytes
 * before; one that is left is refused here.
 */
export function writeMedia(media: Media, place: Placed): JsonObject {
  switch (media.kind) {
    case 'bytes':
      return { inlineData: { mimeType: typeToSend(media), data: media.base64 } }
    case 'file':
      throw unsupportedBlock(place, 'files cannot be named by an id here: send the bytes.')
    case 'url':
      if (isReadByVendor(media.url)) return { fileData: { fileUri: media.url } }
      throw unsupportedBlock(
        place,
        'this model does not read media from the web: send the bytes as a base64 data: URL.',
      )
  }
}
