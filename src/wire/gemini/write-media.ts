import type { JsonObject } from '../../base/json.ts'
import type { Media, Placed } from '../../capabilities/conversation.ts'
import { notTaken } from '../not-taken.ts'

/**
 * The addresses that the vendor itself reads from: films on YouTube. It reads its own files too, but those are the
 * operator's: no client can put one there, and the films that other customers had made are among them.
 */
const readByVendor = /^https:\/\/(?:(?:www\.|m\.)?youtube\.com\/|youtu\.be\/)/

export function isReadByVendor(url: string): boolean {
  return readByVendor.test(url)
}

/**
 * A picture, sound, film or file as a part. The one place where an address that the vendor does not read is met: whoever
 * fetches such things turns them into bytes before they come here.
 */
export function writeMedia(media: Media, place: Placed): JsonObject {
  switch (media.kind) {
    case 'bytes':
      return { inlineData: { mimeType: media.mediaType, data: media.base64 } }
    case 'file':
      throw notTaken(place, 'files cannot be named by an id here: send the bytes.')
    case 'url':
      if (isReadByVendor(media.url)) return { fileData: { fileUri: media.url } }
      throw notTaken(place, 'this model does not read media from the web: send the bytes as a base64 data: URL.')
  }
}
