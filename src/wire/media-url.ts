import { excerpt } from '../base/errors.ts'
import { isPdf } from '../base/pdf-head.ts'
import type { Media, MediaBytes, Placed } from '../capabilities/conversation.ts'
import { invalid } from './issues.ts'
import { unsupportedBlock } from './unsupported-block.ts'

const [scheme, mark] = ['data:', ';base64']

/** A `data:` URL taken apart, or the URL of media to fetch. */
export function mediaOf(url: string, param: string): Media {
  if (url.slice(0, scheme.length).toLowerCase() !== scheme) return { kind: 'url', url }
  // Not by a regular expression, which would backtrack over all parameters of the type, maybe megabytes.
  const end = url.indexOf(',')
  const head = url.slice(scheme.length, Math.max(0, end))
  if (head.slice(-mark.length).toLowerCase() !== mark) {
    throw invalid(param, 'not a base64 data: URL')
  }
  return { kind: 'bytes', mediaType: head.slice(0, head.indexOf(';')).toLowerCase(), base64: url.slice(end + 1) }
}

export function imageMediaOf(url: string, param: string): Media {
  return asImage(mediaOf(url, param), param)
}

/** Refuses anything else: a video in the place of an image would cost far more than the hold for an image. */
export function asImage(media: Media, param: string): Media {
  if (media.kind === 'bytes' && !media.mediaType.startsWith('image/')) throw invalid(param, 'not an image')
  return media
}

const untyped = /^(?:(?:application|binary)\/octet-stream)?$/
/** Base64 characters of the five bytes that say that a file is a PDF. */
const charactersNeeded = 8

/** A file. Clients that know one only by its name give it no type, or that of any bytes: a PDF is found by its own. */
export function documentMediaOf(url: string, param: string): Media {
  const media = mediaOf(url, param)
  if (media.kind !== 'bytes' || !untyped.test(media.mediaType)) return media
  const head = Buffer.from(media.base64.slice(0, charactersNeeded), 'base64')
  return isPdf(head) ? { ...media, mediaType: 'application/pdf' } : media
}

/** The URL of media, for vendors that know no ids of files but their own. */
export function urlOf(media: Media, place: Placed): string {
  if (media.kind === 'url') return media.url
  if (media.kind === 'bytes') return dataUrlOf(media)
  throw unsupportedBlock(place, `this model's vendor does not have the file '${excerpt(media.id)}': send its bytes.`)
}

export function dataUrlOf({ mediaType, base64 }: MediaBytes): string {
  return `data:${mediaType};base64,${base64}`
}
