import type { AudioForm } from '../capabilities/speech.ts'
import { WavReader } from './wav.ts'

const bytesPerSample = 2

/** Measures the length of audio as it arrives: samples are counted, and an mp3's first frame states its bit rate. */
export class AudioLength {
  /** Bytes of the audio itself, without the head of a wav. */
  #bytes = 0
  #bytesPerSecond: number | undefined
  #wav: WavReader | undefined
  #isBegun = false

  get bytes(): number {
    return this.#bytes
  }

  /** Undefined where the audio's form does not tell. */
  get seconds(): number | undefined {
    return this.#bytesPerSecond === undefined ? undefined : this.#bytes / this.#bytesPerSecond
  }

  push(audio: Uint8Array, form: AudioForm): void {
    if (form.kind === 'wav') return this.#pushWav(audio)
    this.#bytes += audio.length
    if (this.#isBegun) return
    this.#isBegun = true
    this.#bytesPerSecond = form.kind === 'pcm' ? form.rate * bytesPerSample : mp3BytesPerSecond(audio)
  }

  /** A wav that cannot be read only has an unknown length here; the code that converts it reports the error. */
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

/** Bit rates of layer III in kbit/s, by ISO 11172-3 and 13818-3. */
const rates1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const rates2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const bytesPerSecondOfKbit = 125
const [layerIII, version1, versionNone] = [0b01, 0b11, 0b01]

/** Reads only files that begin with a frame; streams of speech have no tags before it. */
function mp3BytesPerSecond([first, second = 0, third = 0]: Uint8Array): number | undefined {
  const [version, layer] = [(second >> 3) & 0b11, (second >> 1) & 0b11]
  const isFrame = first === 0xff && second >> 5 === 0b111 && layer === layerIII && version !== versionNone
  const rate = (version === version1 ? rates1 : rates2)[third >> 4] ?? 0
  return isFrame && rate > 0 ? rate * bytesPerSecondOfKbit : undefined
}
