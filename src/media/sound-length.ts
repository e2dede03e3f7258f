import type { SoundForm } from '../capabilities/speech.ts'
import { WavReader } from './wav.ts'

const bytesPerSample = 2

/** How long a sound is, by what has come of it: samples are counted, and an mp3 says its rate in its first frame. */
export class SoundLength {
  /** Of the sound itself, without the head of a wav. */
  #bytes = 0
  #bytesPerSecond: number | undefined
  #wav: WavReader | undefined
  #isBegun = false

  get bytes(): number {
    return this.#bytes
  }

  /** Undefined where its form does not tell. */
  get seconds(): number | undefined {
    return this.#bytesPerSecond === undefined ? undefined : this.#bytes / this.#bytesPerSecond
  }

  push(sound: Uint8Array, form: SoundForm): void {
    if (form.kind === 'wav') return this.#pushWav(sound)
    this.#bytes += sound.length
    if (this.#isBegun) return
    this.#isBegun = true
    this.#bytesPerSecond = form.kind === 'pcm' ? form.rate * bytesPerSample : mp3BytesPerSecond(sound)
  }

  /** Whoever shapes it complains of one that cannot be read; here it is a sound whose length nobody knows. */
  #pushWav(bytes: Uint8Array): void {
    this.#wav ??= new WavReader()
    try {
      this.#bytes += this.#wav.push(bytes).length
    } catch {
      this.#bytes += bytes.length
    }
    const { samples } = this.#wav
    if (samples !== undefined) this.#bytesPerSecond = samples.rate * samples.channels * bytesPerSample
  }
}

/** ISO 11172-3 and 13818-3, layer III, in kbit/s. */
const rates1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const rates2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const bytesPerSecondOfKbit = 125
const [layerIII, version1, versionNone] = [0b01, 0b11, 0b01]

/** Of a file that begins with a frame; streams of speech have no tags. */
function mp3BytesPerSecond([first, second = 0, third = 0]: Uint8Array): number | undefined {
  const [version, layer] = [(second >> 3) & 0b11, (second >> 1) & 0b11]
  const isFrame = first === 0xff && second >> 5 === 0b111 && layer === layerIII && version !== versionNone
  const rate = (version === version1 ? rates1 : rates2)[third >> 4] ?? 0
  return isFrame && rate > 0 ? rate * bytesPerSecondOfKbit : undefined
}
