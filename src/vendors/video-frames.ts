import { badRequest } from '../base/errors.ts'
import { readImageHead } from '../base/image-head.ts'
import type { VideoAsk, VideoMedia, VideoRole } from '../capabilities/video.ts'
import type { VendorResponse } from './vendor.ts'

/** An image as bytes, from its `data:` URL or as it was fetched. Its type is taken from its own header. */
export function frameIn(url: string, fetched?: ReadonlyMap<string, VendorResponse>) {
  const [, base64] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? []
  const bytes = base64 === undefined ? fetched?.get(url)?.body : Buffer.from(base64, 'base64')
  const head = bytes === undefined ? undefined : readImageHead(bytes)
  if (bytes === undefined || head === undefined || head === 'broken') {
    throw badRequest('The given file is not an image, or has an unknown format.', 'input.media')
  }
  return { bytes, mediaType: head.mediaType }
}

export function urlOf(media: readonly VideoMedia[], role: VideoRole): string | undefined {
  return media.find((one) => one.role === role)?.url
}

export function urlsOf(media: readonly VideoMedia[], role: VideoRole): string[] {
  return media.flatMap((one) => (one.role === role ? [one.url] : []))
}

/** The first frame, and the last one where there is one. */
export function framesOf({ media }: VideoAsk): string[] {
  return [...urlsOf(media, 'first-frame'), ...urlsOf(media, 'last-frame')]
}
