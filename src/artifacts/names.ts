import { newId } from '../base/ids.ts'

/**
 * A kept result is served only under a type of this table, chosen by the ending of its id. The table has no type that a
 * browser would run, and because of the ending no type has to be stored beside the bytes.
 */
const mediaTypes = {
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  ogg: 'audio/ogg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  mp4: 'video/mp4',
  webm: 'video/webm',
  mov: 'video/quicktime',
  bin: 'application/octet-stream',
} as const

type Ending = keyof typeof mediaTypes

const otherSpellings: Readonly<Record<string, Ending>> = {
  'image/jpg': 'jpg',
  'audio/mp3': 'mp3',
  'audio/x-wav': 'wav',
}
const endings: ReadonlyMap<string, Ending> = new Map([
  ...Object.entries(mediaTypes).map(([ending, type]) => [type, ending as Ending] as const),
  ...Object.entries(otherSpellings),
])

/** A type that is not in the table becomes plain bytes to download. */
export function newArtifactId(mediaType: string): string {
  const plain = mediaType.split(';')[0]?.trim().toLowerCase() ?? ''
  return `${newId('art')}.${endings.get(plain) ?? 'bin'}`
}

const idPattern = /^art_[0-9a-f]{32}\.([a-z0-9]{2,4})$/

/** Undefined for anything that is not one of our ids. */
export function mediaTypeOf(id: string): string | undefined {
  const ending = idPattern.exec(id)?.[1]
  return ending !== undefined && Object.hasOwn(mediaTypes, ending) ? mediaTypes[ending as Ending] : undefined
}

/** Names begin with the hour of their expiry, so that they sort by it and a sweep deletes whole hours. */
export function nameOf(id: string, expiresAt: number): string {
  return `${hourOf(expiresAt)}/${id}`
}

/** `2027013118`, in UTC. */
export function hourOf(unixMs: number): string {
  return new Date(unixMs).toISOString().slice(0, 13).replaceAll(/\D/g, '')
}

export const hourPattern = /^\d{10}$/
