import { crc, createBitWriter } from './bits.ts'

export type AudioFormat = 'mp3' | 'opus' | 'aac' | 'flac' | 'wav' | 'pcm'

/** Mono at 24 kHz, which all these vendors produce. A sample is two bytes, low byte first. */
export const sampleRate = 24_000

const bytesPerMs = (sampleRate * 2) / 1_000

/** A file of the given duration. WAV and PCM hold a tone, the compressed formats silence. */
export function recordAudio(format: AudioFormat, ms: number): Buffer<ArrayBuffer> {
  return recorders[format](ms)
}

const recorders = { mp3, opus, aac, flac, wav, pcm } as const satisfies Record<
  AudioFormat,
  (ms: number) => Buffer<ArrayBuffer>
>

export const audioTypes = {
  mp3: 'audio/mpeg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
} as const satisfies Record<AudioFormat, string>

export const isAudioFormat = (name: string): name is AudioFormat => Object.hasOwn(recorders, name)

/** A tone that swells and fades ten times a second. One beat is computed and then repeated. */
function pcm(ms: number): Buffer<ArrayBuffer> {
  return Buffer.alloc(ms * bytesPerMs, beat)
}

const beatSamples = sampleRate / 10
const beat = Buffer.alloc(beatSamples * 2)
for (let at = 0; at < beatSamples; at += 1) {
  const swell = Math.sin((Math.PI * at) / beatSamples)
  beat.writeInt16LE(Math.round(8_000 * swell * Math.sin((2 * Math.PI * 220 * at) / sampleRate)), at * 2)
}

function wav(ms: number): Buffer<ArrayBuffer> {
  const samples = pcm(ms)
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(36 + samples.length, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20) // PCM
  header.writeUInt16LE(1, 22) // mono
  header.writeUInt32LE(sampleRate, 24)
  header.writeUInt32LE(sampleRate * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(samples.length, 40)
  return Buffer.concat([header, samples])
}

/** How many packets the duration takes, at least one. */
const packets = (ms: number, packetMs: number): number => Math.max(1, Math.ceil(ms / packetMs))

/**
 * MPEG-2 layer III, 160 kbit/s, 480 bytes for 24 ms, as OpenAI sends it. A frame whose fields are all zero is silent.
 */
function mp3(ms: number): Buffer<ArrayBuffer> {
  const frame = Buffer.alloc(480)
  frame.set([0xff, 0xf3, 0xe4, 0xc4])
  return Buffer.alloc(packets(ms, 24) * frame.length, frame)
}

/** ADTS frames of 1,024 samples, each holding the shortest silence that AAC-LC can express. */
function aac(ms: number): Buffer<ArrayBuffer> {
  const silence = [0x00, 0xc8, 0x00, 0x80, 0x23, 0x80]
  const header = createBitWriter()
  header.put(0xfff1, 16) // MPEG-4, no checksum
  header.put(1, 2) // LC
  header.put(6, 4) // 24 kHz
  header.put(1, 4) // not private, mono
  header.put(0, 4)
  header.put(7 + silence.length, 13)
  header.put(0x7ff, 11)
  header.put(0, 2)
  const frame = Buffer.from([...header.bytes(), ...silence])
  return Buffer.alloc(packets(ms, 1_024_000 / sampleRate) * frame.length, frame)
}

const flacBlock = 576

/** Frames that each hold one constant value, zero. */
function flac(ms: number): Buffer<ArrayBuffer> {
  const count = packets(ms, flacBlock / (sampleRate / 1_000))
  const info = createBitWriter()
  info.put(0x664c6143, 32) // fLaC
  info.put(0x80000022, 32) // the last metadata block, 34 bytes
  info.put(flacBlock, 16)
  info.put(flacBlock, 16)
  info.put(0, 48) // frame sizes unknown
  info.put(sampleRate, 20)
  info.put(0, 3) // mono
  info.put(15, 5) // 16 bits
  info.put(count * flacBlock, 36)
  const frames = Array.from({ length: count }, (_, index) => flacFrame(index))
  return Buffer.concat([info.bytes(), Buffer.alloc(16), ...frames])
}

function flacFrame(index: number): Buffer<ArrayBuffer> {
  // 576 samples, 24 kHz, mono, 16 bits; then the frame's number, encoded like a UTF-8 character.
  const head = Buffer.concat([Buffer.from([0xff, 0xf8, 0x27, 0x08]), Buffer.from(String.fromCodePoint(index))])
  const body = [...head, crc(head, { polynomial: 0x07, bits: 8 }), 0, 0, 0]
  const sum = crc(Uint8Array.from(body), { polynomial: 0x8005, bits: 16 })
  return Buffer.from([...body, sum >> 8, sum & 255])
}

/** An Ogg stream of 20 ms packets, fifty to a page. */
function opus(ms: number): Buffer<ArrayBuffer> {
  const head = Buffer.from([...Buffer.from('OpusHead'), 1, 1, 0, 0, 0xc0, 0x5d, 0, 0, 0, 0, 0])
  const tags = Buffer.from([...Buffer.from('OpusTags'), 7, 0, 0, 0, ...Buffer.from('sandbox'), 0, 0, 0, 0])
  const pages = [oggPage(0, 2, 0, [head]), oggPage(1, 0, 0, [tags])]
  const count = packets(ms, 20)
  for (let sent = 0; sent < count;) {
    const batch = Math.min(50, count - sent)
    sent += batch
    // Opus counts time in samples of 48 kHz, whatever the input rate.
    const position = sent * 960
    pages.push(
      oggPage(
        pages.length,
        sent === count ? 4 : 0,
        position,
        Array.from({ length: batch }, () => silentOpus),
      ),
    )
  }
  return Buffer.concat(pages)
}

const silentOpus = Buffer.from([0xf8, 0xff, 0xfe])

function oggPage(number: number, flags: number, position: number, packets: readonly Buffer[]): Buffer<ArrayBuffer> {
  const header = Buffer.alloc(27)
  header.write('OggS', 0, 'latin1')
  header[5] = flags
  header.writeUInt32LE(position, 6)
  header.writeUInt32LE(1, 14)
  header.writeUInt32LE(number, 18)
  header[26] = packets.length
  const page = Buffer.concat([header, Buffer.from(packets.map(({ length }) => length)), ...packets])
  page.writeUInt32LE(crc(page, { polynomial: 0x04c11db7, bits: 32 }), 22)
  return page
}
