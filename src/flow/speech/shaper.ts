import { GatewayError } from '../../base/errors.ts'
import type { SoundForm } from '../../capabilities/speech.ts'
import type { Mp3Encoders, Mp3Encoding } from '../../media/mp3.ts'
import { wavHead, WavReader, type Samples } from '../../media/wav.ts'

const nothing = new Uint8Array()

/** Makes what the client asked for out of a vendor's sound, as it comes and across the pieces of a text. */
export class Shaper {
  readonly #format: string
  readonly #encoders: Mp3Encoders
  #samples: Samples | undefined
  #wav: WavReader | undefined
  #encoding: Mp3Encoding | undefined
  /** Of a sample whose other byte has not come yet. */
  #odd: Uint8Array = nothing
  #hasHead = false

  constructor(format: string, encoders: Mp3Encoders) {
    this.#format = format
    this.#encoders = encoders
  }

  /** Of the sound so far; undefined where it comes as the client wants it, or nothing has come. */
  get samples(): Samples | undefined {
    return this.#samples
  }

  async push(sound: Uint8Array, form: SoundForm): Promise<Uint8Array> {
    if (form.kind === 'ready') return sound
    const whole = this.#wholeSamples(this.#bare(sound, form))
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

  /** The next sound belongs to another file, with a head of its own. */
  endPiece(): void {
    this.#wav = undefined
    this.#odd = nothing
  }

  /** What the encoder had kept for a frame that was not full. */
  async end(): Promise<Uint8Array> {
    const encoding = this.#encoding
    this.#encoding = undefined
    return encoding === undefined ? nothing : encoding.end()
  }

  close(): void {
    this.#encoding?.close()
    this.#encoding = undefined
  }

  /** In front of the first samples, which need not come with what said their kind. */
  #withHead(whole: Uint8Array, samples: Samples): Uint8Array {
    if (this.#hasHead) return whole
    this.#hasHead = true
    return Buffer.concat([wavHead(samples), whole])
  }

  #bare(sound: Uint8Array, form: Exclude<SoundForm, { kind: 'ready' }>): Uint8Array {
    if (form.kind === 'pcm') {
      this.#keepTo({ rate: form.rate, channels: 1 })
      return sound
    }
    this.#wav ??= new WavReader()
    const bare = this.#wav.push(sound)
    if (this.#wav.samples !== undefined) this.#keepTo(this.#wav.samples)
    return bare
  }

  /** Pieces of one text are joined as they are: another rate in the middle would be heard as another voice. */
  #keepTo(samples: Samples): void {
    this.#samples ??= samples
    if (this.#samples.rate === samples.rate && this.#samples.channels === samples.channels) return
    throw new GatewayError('upstream-failed', "The model's vendor changed the audio format midway.")
  }

  /** Bytes come cut anywhere; half a sample waits for its other half. */
  #wholeSamples(bytes: Uint8Array): Uint8Array {
    const all = this.#odd.length === 0 ? bytes : Buffer.concat([this.#odd, bytes])
    const end = all.length - (all.length % (2 * (this.#samples?.channels ?? 1)))
    this.#odd = all.subarray(end)
    return all.subarray(0, end)
  }
}
