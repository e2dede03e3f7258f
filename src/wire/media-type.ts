import type { Media } from '../capabilities/conversation.ts'

/** How the formats that vendors of chat take begin. */
const beginnings: readonly (readonly [RegExp, string])[] = [
  [/^\x89PNG/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8/, 'image/gif'],
  [/^RIFF[^]{4}WEBP/, 'image/webp'],
]

/** Base64 characters of the twelve bytes after which every format above is known. */
const charactersNeeded = 16

/**
 * The media type to send with the bytes of a file. That of an image is what its bytes say: many clients label every
 * image alike, which OpenAI does not mind, but Anthropic and Google refuse.
 */
export function typeToSend({ mediaType, base64 }: Extract<Media, { kind: 'bytes' }>): string {
  if (!mediaType.startsWith('image/')) return mediaType
  const start = Buffer.from(base64.slice(0, charactersNeeded), 'base64').toString('latin1')
  return beginnings.find(([beginning]) => beginning.test(start))?.[1] ?? registeredType(mediaType)
}

/** The registered name of a media type: many clients write `image/jpg`, which vendors refuse. */
function registeredType(mediaType: string): string {
  return mediaType === 'image/jpg' ? 'image/jpeg' : mediaType
}
