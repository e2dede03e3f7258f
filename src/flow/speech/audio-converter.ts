import { GatewayError } from '../../base/errors.ts'
import type { AudioForm } from '../../capabilities/speech.ts'
import type { Mp3Encoders, Mp3Encoding } from '../../media/mp3.ts'
import { wavHead, WavReader, type SampleFormat } from '../../media/wav.ts'

const nothing = new Uint8Array()

/** Turns a vendor's audio into the format that the client asked for, as it comes and across the pieces of a text. */
export class AudioConverter {
  readonly #format: string
  readonly #encoders: Mp3Encoders
  #samples: SampleFormat | undefined
  #wav: WavReader | undefined
  #encoding: Mp3Encoding | undefined
  /** The bytes of a sample whose rest has not come yet. */
  #odd: Uint8Array = nothing
  #hasHead = false
  /** Whether the piece is mp3 although wav was asked for: some servers make nothing else. */
  #isMp3: boolean | undefined

  constructor(format: string, encoders: Mp3Encoders) {
    this.#format = format
    this.#encoders = encoders
  }

  /** The rate and channels so far; undefined where the audio comes in the client's format already, or none has come. */
  get samples(): SampleFormat | undefined {
    return this.#samples
  }

  async push(audio: Uint8Array, form: AudioForm): Promise<Uint8Array> {
    this.#isMp3 ??= this.#format === 'mp3' && form.kind === 'wav' && beginsMp3(audio)
    if (form.kind === 'ready' || this.#isMp3) return audio
    const whole = this.#wholeSamples(this.#bare(audio, form))
    const samples = this.#samples
    if (whole.length === 0 || samples === undefined) return nothing
    switch (this.#format) {
      case 'mp3':
        this.#encoding ??= this.#encoders.open(samples)
        return this.#encoding.encode(whole)
      case 'wav':
        return this.#withHead(whole, samples)
      default:
        return whole
    }
  }

  /** The next audio belongs to another file, with a header of its own. */
  endPiece(): void {
    this.#wav = undefined
    this.#odd = nothing
    this.#isMp3 = undefined
  }

  /** What the encoder still holds for a frame that is not full. */
  async end(): Promise<Uint8Array> {
    const encoding = this.#encoding
    this.#encoding = undefined
    return encoding === undefined ? nothing : encoding.end()
  }

  close(): void {
    this.#encoding?.close()
    this.#encoding = undefined
  }

  /** Puts a header before the first samples, which may come later than the bytes that told their format. */
  #withHead(whole: Uint8Array, samples: SampleFormat): Uint8Array {
    if (this.#hasHead) return whole
    this.#hasHead = true
    return Buffer.concat([wavHead(samples), whole])
  }

  #bare(audio: Uint8Array, form: Exclude<AudioForm, { kind: 'ready' }>): Uint8Array {
    if (form.kind === 'pcm') {
      this.#keepTo({ rate: form.rate, channels: 1 })
      return audio
    }
    this.#wav ??= new WavReader()
    const bare = this.#wav.push(audio)
    if (this.#wav.samples !== undefined) this.#keepTo(this.#wav.samples)
    return bare
  }

  /** Pieces of one text are joined without conversion: another rate in the middle would sound like another voice. */
  #keepTo(samples: SampleFormat): void {
    this.#samples ??= samples
    if (this.#samples.rate === samples.rate && this.#samples.channels === samples.channels) return
    throw new GatewayError('upstream-failed', "The model's vendor changed the audio format midway.")
  }

  /** Chunks may be cut anywhere, so an incomplete sample waits for its rest. */
  #wholeSamples(bytes: Uint8Array): Uint8Array {
    const all = this.#odd.length === 0 ? bytes : Buffer.concat([this.#odd, bytes])
    const end = all.length - (all.length % (2 * (this.#samples?.channels ?? 1)))
    this.#odd = all.subarray(end)
    return all.subarray(0, end)
  }
}

/** An mp3 file begins with a tag or with the first frame, whose first eleven bits are set. */
function beginsMp3([first = 0, second = 0, third = 0]: Uint8Array): boolean {
  const isTag = first === 0x49 && second === 0x44 && third === 0x33
  return isTag || (first === 0xff && second >= 0xe0)
}
