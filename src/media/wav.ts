import { GatewayError } from '../base/errors.ts'

/** Samples of 16 bits, little-endian. */
export type SampleFormat = { readonly rate: number; readonly channels: 1 | 2 }

const bytesPerSample = 2
/** The length of the head that `wavHead` writes. */
export const wavHeadBytes = 44
/** Writers put this for a length that they do not know yet. */
const unknownLength = 0xffff_ffff

/** The head of a file with `dataBytes` of samples; without a length, of a stream whose end is not known yet. */
export function wavHead({ rate, channels }: SampleFormat, dataBytes?: number): Uint8Array {
  const head = Buffer.alloc(wavHeadBytes)
  const frameBytes = bytesPerSample * channels
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(dataBytes === undefined ? unknownLength : wavHeadBytes - 8 + dataBytes, 4)
  head.write('WAVEfmt ', 8, 'latin1')
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20) // plain samples
  head.writeUInt16LE(channels, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate * frameBytes, 28)
  head.writeUInt16LE(frameBytes, 32)
  head.writeUInt16LE(bytesPerSample * 8, 34)
  head.write('data', 36, 'latin1')
  head.writeUInt32LE(dataBytes ?? unknownLength, 40)
  return head
}

/** Whether a sample rate is plausible for audio: from a telephone's to a studio's. */
export function isRate(rate: number): boolean {
  return Number.isInteger(rate) && rate >= 8_000 && rate <= 192_000
}

// A head has some dozen bytes; one with no samples after this many, because of an embedded image, say, is not audio.
const headBytesMax = 256 * 1024

/** Removes the head of a file as it arrives, and everything after the samples. */
export class WavReader {
  #head: Buffer | undefined = Buffer.alloc(0)
  #samples: SampleFormat | undefined
  /** How many bytes of samples are still to come, by the length in the head. */
  #left = 0

  /** Known once the head is read. */
  get samples(): SampleFormat | undefined {
    return this.#samples
  }

  push(bytes: Uint8Array): Uint8Array {
    if (this.#head === undefined) return this.#take(bytes)
    this.#head = Buffer.concat([this.#head, bytes])
    const start = this.#readHead(this.#head)
    if (start === undefined) {
      if (this.#head.length > headBytesMax) throw notWav('no samples where they should be')
      return new Uint8Array()
    }
    const rest = this.#head.subarray(start)
    this.#head = undefined
    return this.#take(rest)
  }

  #take(bytes: Uint8Array): Uint8Array {
    const taken = bytes.subarray(0, Math.min(bytes.length, this.#left))
    this.#left -= taken.length
    return taken
  }

  /** Where the samples begin, or undefined while the head is incomplete. */
  #readHead(head: Buffer): number | undefined {
    if (head.length < 12) return undefined
    if (head.toString('latin1', 0, 4) !== 'RIFF' || head.toString('latin1', 8, 12) !== 'WAVE') throw notWav('no RIFF')
    for (let at = 12; at + 8 <= head.length;) {
      const name = head.toString('latin1', at, at + 4)
      const length = head.readUInt32LE(at + 4)
      if (name === 'data') {
        if (this.#samples === undefined) throw notWav('samples of no kind')
        // Streams are written before their length is known: their length is the largest number, or 0.
        this.#left = length === 0 || length >= unknownLength - wavHeadBytes ? Number.POSITIVE_INFINITY : length
        return at + 8
      }
      if (name === 'fmt ' && at + 8 + 16 <= head.length) this.#samples = readFormat(head, at + 8)
      at += 8 + length + (length % 2)
    }
    return undefined
  }
}

const plain = 1
/** The longer form of the format chunk, which names the kind of samples again further on. */
const extensible = 0xfffe

function readFormat(head: Buffer, at: number): SampleFormat {
  const kind = head.readUInt16LE(at)
  const channels = head.readUInt16LE(at + 2)
  const bits = head.readUInt16LE(at + 14)
  const rate = head.readUInt32LE(at + 4)
  if (!isRate(rate)) throw notWav(`${rate} samples a second`)
  if ((kind !== plain && kind !== extensible) || bits !== bytesPerSample * 8 || (channels !== 1 && channels !== 2)) {
    throw notWav(`format ${kind}, ${channels} channels of ${bits} bits`)
  }
  return { rate, channels }
}

function notWav(why: string): GatewayError {
  const message = "The model's vendor sent audio in an unknown format."
  return new GatewayError('upstream-failed', message, { cause: new Error(why) })
}
