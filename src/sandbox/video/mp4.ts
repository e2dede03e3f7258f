import { box, boxHeadBytes, join, text, u16, u32, zeros } from './boxes.ts'
import { firstImage, type Image, imageParameters, profileBytes, sameImage, sequenceParameters } from './h264.ts'

export type Footage = Omit<Clip, 'colour'>

/** A video. Every byte of its file follows from this. */
export type Clip = Image & { readonly frames: number; readonly sound: boolean }

export const framesPerSecond = 24

/** The size of a video whose shape and short side are given. Both sides are even. */
export function sizeIn(ratio: `${number}:${number}`, short: number): { width: number; height: number } {
  const [across = 1, down = 1] = ratio.split(':').map(Number)
  const side = (parts: number): number => Math.round((short * parts) / Math.min(across, down) / 2) * 2
  return { width: side(across), height: side(down) }
}

// The whole file counts its duration in this many parts of a second.
const movieScale = framesPerSecond
const audioScale = 48_000
const samplesPerAudioFrame = 1_024
/** A silent AAC frame with one channel. */
const silence = Uint8Array.of(0x00, 0xc8, 0x00, 0x80, 0x23, 0x80)

type Track = {
  readonly scale: number
  readonly samples: readonly Uint8Array[]
  /** The duration of each sample in parts of `scale`; the last sample takes the rest of the duration. */
  readonly sampleDuration: number
  readonly duration: number
  readonly kind: 'vide' | 'soun'
  readonly width: number
  readonly height: number
  readonly description: Uint8Array
}

/** A complete MP4 file: H.264, plus silent AAC where it has sound. */
export function writeMp4(clip: Clip): Uint8Array<ArrayBuffer> {
  const tracks = clip.sound ? [videoTrack(clip), audioTrack(clip)] : [videoTrack(clip)]
  const type = box('ftyp', text('isom'), u32(0x200), text('isomiso2avc1mp41'))
  // The index comes first and holds offsets beyond itself, so it is written once to learn its length and then for real.
  const indexBytes = writeIndex(clip, tracks, 0).length
  const index = writeIndex(clip, tracks, type.length + indexBytes + boxHeadBytes)
  return join([type, index, box('mdat', ...tracks.flatMap((track) => track.samples))])
}

function videoTrack(clip: Clip): Track {
  const { width, height, frames } = clip
  const samples = Array.from({ length: frames }, (_, index) =>
    withLength(index === 0 ? firstImage(clip) : sameImage(clip, index)),
  )
  const description = box(
    'avc1',
    zeros(6),
    u16(1),
    zeros(16),
    u16(width),
    u16(height),
    u32(0x480000),
    u32(0x480000),
    u32(0),
    u16(1),
    zeros(32),
    u16(24),
    u16(0xffff),
    decoderFacts(clip),
  )
  return {
    scale: framesPerSecond,
    samples,
    sampleDuration: 1,
    duration: frames,
    kind: 'vide',
    width,
    height,
    description,
  }
}

/** The parameters that a decoder needs before the first picture. */
function decoderFacts(clip: Clip): Uint8Array {
  const sequence = sequenceParameters(clip)
  const image = imageParameters()
  const start = Uint8Array.of(1, ...profileBytes, 0xff, 0xe1)
  return box('avcC', start, u16(sequence.length), sequence, Uint8Array.of(1), u16(image.length), image)
}

function audioTrack({ frames }: Clip): Track {
  const duration = (frames * audioScale) / framesPerSecond
  const samples = Array.from({ length: Math.ceil(duration / samplesPerAudioFrame) }, () => silence)
  const description = box(
    'mp4a',
    zeros(6),
    u16(1),
    zeros(8),
    u16(1),
    u16(16),
    zeros(4),
    u16(audioScale),
    u16(0),
    audioFacts,
  )
  const size = { width: 0, height: 0 }
  return {
    scale: audioScale,
    samples,
    sampleDuration: samplesPerAudioFrame,
    duration,
    kind: 'soun',
    ...size,
    description,
  }
}

/** Nested descriptors: AAC-LC, 48 kHz, one channel. */
const audioFacts = box(
  'esds',
  u32(0),
  descriptor(
    3,
    u16(2),
    Uint8Array.of(0),
    descriptor(4, Uint8Array.of(0x40, 0x15), zeros(11), descriptor(5, u16(0x1188))),
    descriptor(6, Uint8Array.of(2)),
  ),
)

function descriptor(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const body = join(parts)
  return join([Uint8Array.of(tag, body.length), body])
}

function writeIndex(clip: Clip, tracks: readonly Track[], dataStart: number): Uint8Array {
  let offset = dataStart
  const written = tracks.map((track, index) => {
    const start = offset
    offset += track.samples.reduce((bytes, sample) => bytes + sample.length, 0)
    return writeTrack(track, index + 1, clip.frames, start)
  })
  const head = box(
    'mvhd',
    zeros(12),
    u32(movieScale),
    u32(clip.frames),
    u32(0x10000),
    u16(0x100),
    zeros(10),
    upright,
    zeros(24),
    u32(tracks.length + 1),
  )
  return box('moov', head, ...written)
}

function writeTrack(track: Track, id: number, movieDuration: number, start: number): Uint8Array {
  const { scale, samples, sampleDuration, duration, kind, width, height, description } = track
  const isVideo = kind === 'vide'
  const lastDuration = duration - (samples.length - 1) * sampleDuration
  const table = box(
    'stbl',
    box('stsd', u32(0), u32(1), description),
    box('stts', u32(0), u32(2), u32(samples.length - 1), u32(sampleDuration), u32(1), u32(lastDuration)),
    ...(isVideo ? [box('stss', u32(0), u32(1), u32(1))] : []),
    box('stsc', u32(0), u32(1), u32(1), u32(samples.length), u32(1)),
    box('stsz', u32(0), u32(0), u32(samples.length), ...samples.map((sample) => u32(sample.length))),
    box('stco', u32(0), u32(1), u32(start)),
  )
  const head = box(
    'tkhd',
    u32(3),
    zeros(8),
    u32(id),
    u32(0),
    u32(movieDuration),
    zeros(12),
    u16(isVideo ? 0 : 0x100),
    u16(0),
    upright,
    u32(width * 0x10000),
    u32(height * 0x10000),
  )
  const handler = box('hdlr', zeros(8), text(kind), zeros(12), text(isVideo ? 'Video\0' : 'Sound\0'))
  const media = isVideo ? box('vmhd', u32(1), zeros(8)) : box('smhd', zeros(8))
  const place = box('dinf', box('dref', u32(0), u32(1), box('url ', u32(1))))
  const facts = box('mdhd', zeros(12), u32(scale), u32(duration), u16(0x55c4), u16(0))
  return box('trak', head, box('mdia', facts, handler, box('minf', media, place, table)))
}

/** The identity matrix: neither rotated nor scaled. */
const upright = join([u32(0x10000), zeros(12), u32(0x10000), zeros(12), u32(0x40000000)])

function withLength(unit: Uint8Array): Uint8Array {
  return join([u32(unit.length), unit])
}
