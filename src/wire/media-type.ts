import { imageTypeOf } from '../base/image-head.ts'
import type { MediaBytes } from '../capabilities/conversation.ts'

/** Base64 characters of the twelve bytes that say what an image is. */
const charactersNeeded = 16

/**
 * The media type to send with the bytes of a file. That of an image is what its bytes say: many clients label every
 * image alike, which OpenAI does not mind, but Anthropic and Google refuse.
 */
export function typeToSend({ mediaType, base64 }: MediaBytes): string {
  if (!mediaType.startsWith('image/')) return mediaType
  return imageTypeOf(Buffer.from(base64.slice(0, charactersNeeded), 'base64')) ?? registeredType(mediaType)
}

/** The registered name of a media type: many clients write `image/jpg`, which vendors refuse. */
function registeredType(mediaType: string): string {
  return mediaType === 'image/jpg' ? 'image/jpeg' : mediaType
}
