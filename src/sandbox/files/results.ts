import type { Call, Protocol } from '../protocol.ts'
import { linkSeconds, refuseLink, signLink } from '../signed-links.ts'
import type { Steering } from '../steering.ts'
import { type AudioFormat, audioTypes, isAudioFormat, recordAudio } from './audio.ts'
import { drawImage, isImageFormat, parseSize, type ImageSpec, writeSize } from './image.ts'

/** Results are served behind links that are signed for a day. No file is stored: its name says how to make it again. */
type LinkOptions = { readonly call: Call; readonly steering: Steering; readonly lifeSeconds?: number }

export const linkImage = ({ format, seed, ...size }: ImageSpec, options: LinkOptions): string =>
  linkTo(`${seed}-${writeSize(size)}.${format}`, options)

export const linkAudio = (format: AudioFormat, ms: number, options: LinkOptions): string =>
  linkTo(`${ms}.${format}`, options)

/** `sandbox:expired` makes a link that has already expired. */
function linkTo(name: string, { call, steering, lifeSeconds = linkSeconds }: LinkOptions): string {
  const address = `${new URL(call.request.url).origin}/${call.vendor}/results/${name}`
  return signLink(address, linkExpiry(steering, lifeSeconds))
}

export function linkExpiry(steering: Steering, lifeSeconds = linkSeconds): number {
  return Math.floor(Date.now() / 1000) + (steering.has('expired') ? -1 : lifeSeconds)
}

/** Serves the linked files. No key is needed, because the signature authorises the request. */
export const resultsProtocol: Protocol = (_, root) => [
  {
    method: 'GET',
    path: `${root}/results/*`,
    answer: ({ path, request }) =>
      refuseLink(request.url, Date.now()) ?? makeFile(path.slice(path.lastIndexOf('/') + 1)),
  },
]

function makeFile(name: string): Response {
  const [stem = '', format = ''] = name.split('.')
  if (isAudioFormat(format)) {
    return new Response(recordAudio(format, Number(stem)), { headers: { 'content-type': audioTypes[format] } })
  }
  const [seed, size = ''] = stem.split('-')
  const sides = parseSize(size)
  if (!isImageFormat(format) || sides === undefined) return new Response(null, { status: 404 })
  const file = drawImage({ ...sides, format, seed: Number(seed) })
  return new Response(file, { headers: { 'content-type': `image/${format}` } })
}
