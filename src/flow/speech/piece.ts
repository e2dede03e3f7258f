import { GatewayError, refusedInside } from '../../base/errors.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import { charactersOf, type AudioForm, type SpeechAsk, type SpeechCodec } from '../../capabilities/speech.ts'
import type { Counted, Usage } from '../../capabilities/usage.ts'
import { AudioLength } from '../../media/audio-length.ts'
import { refusalBytesMax } from '../../upstream/read-refusal-body.ts'
import type { Exchange } from '../../upstream/transport.ts'
import type { AudioReader } from '../../vendors/vendor.ts'

// Two seconds of samples per character, as base64: far beyond the slowest speech, and a bound for audio without an end.
const bytesPerCharacterMax = 128 * 1024
const bytesSpare = 4 * 1024 * 1024

/** The audio of one piece of a text, on its way from the vendor. */
export class PieceAudio {
  readonly #exchange: Exchange
  readonly #reader: AudioReader
  readonly #piece: string
  readonly #bytesMax: number
  readonly #length = new AudioLength()
  #bytes = 0
  #first: Uint8Array | undefined
  #isOver = false
  #isHeard = false

  constructor(exchange: Exchange, reader: AudioReader, piece: string) {
    this.#exchange = exchange
    this.#reader = reader
    this.#piece = piece
    this.#bytesMax = charactersOf(piece) * bytesPerCharacterMax + bytesSpare
  }

  get form(): AudioForm {
    return this.#reader.form
  }

  /** Waits for the first audio: until it comes, a failure can still be an ordinary error answer. */
  async begin(): Promise<void> {
    const type = this.#exchange.header('content-type') ?? ''
    if (type.startsWith('text/html')) throw unreadable()
    if (type.startsWith('application/json')) throw await this.#refused()
    this.#first = await this.next()
    if (this.#first === undefined) throw unreadable()
  }

  /** The next audio, or undefined at its proper end. Throws where it was cut off: a cut must never look like an end. */
  async next(): Promise<Uint8Array | undefined> {
    if (this.#first !== undefined) {
      const first = this.#first
      this.#first = undefined
      return first
    }
    while (!this.#isOver) {
      const bytes = await this.#exchange.read()
      if (bytes === undefined) {
        if (!this.#reader.ended) throw new GatewayError('upstream-failed', "The model's vendor broke off the audio.")
        this.#isOver = true
        return undefined
      }
      const audio = this.#read(bytes)
      if (audio.length > 0) return audio
    }
    return undefined
  }

  abort(): void {
    this.#exchange.abort()
  }

  /**
   * Undefined until audio came. Sold by the character, the whole piece is charged as soon as audio comes, because the
   * vendor has made it and charges for it; sold by the token, only the audio that came.
   */
  count(ask: SpeechAsk, codec: SpeechCodec): Counted | undefined {
    if (!this.#isHeard) return undefined
    const { usage: told } = this.#reader
    const isCounted = this.#isOver && told !== undefined
    const basis = isCounted ? 'vendor' : 'estimated'
    if (ask.soldBy === 'token') return { usage: isCounted ? told : this.#estimate(ask, codec), basis }
    const usage = { character: charactersOf(this.#piece) }
    return told === undefined ? { usage, basis } : { usage, basis, vendorUsage: told }
  }

  /** The error for a JSON body in place of audio. */
  async #refused(): Promise<Error> {
    const body = decodeUtf8(await this.#exchange.readAll(refusalBytesMax).catch(() => new Uint8Array()))
    const status = this.#reader.statusOf?.(body)
    return status === undefined ? unreadable() : refusedInside({ status, body })
  }

  #read(bytes: Uint8Array): Uint8Array {
    this.#bytes += bytes.length
    if (this.#bytes > this.#bytesMax) {
      this.#exchange.abort()
      throw new GatewayError('upstream-failed', "The model's vendor sent more than was requested.")
    }
    const audio = this.#reader.read(bytes)
    const { refusal } = this.#reader
    if (refusal !== undefined) {
      if (this.#isHeard) throw new GatewayError('upstream-failed', "The model's vendor broke off the audio.")
      throw refusedInside(refusal)
    }
    if (audio.length === 0) return audio
    this.#isHeard = true
    this.#length.push(audio, this.#reader.form)
    return audio
  }

  /** The input of the whole text, and the audio that came: at most what the vendor announced for all of it. */
  #estimate({ instructions = '', bound, pieces, format }: SpeechAsk, codec: SpeechCodec): Usage {
    const { usage: told } = this.#reader
    const most = Math.min((bound.output ?? 0) / pieces.length, told?.audioOutput ?? Number.POSITIVE_INFINITY)
    const audioOutput = Math.max(1, Math.min(Math.ceil(this.#soundTokens(format)), Math.floor(most)))
    return { input: told?.input ?? codec.estimateTokens(`${instructions}${this.#piece}`), audioOutput }
  }

  /** By the seconds where the audio tells them; otherwise a whole piece by its characters and a part by its bytes. */
  #soundTokens(format: string): number {
    const { tokensPerSecond = commonTokensPerSecond } = this.#reader
    const { seconds, bytes } = this.#length
    if (seconds !== undefined) return seconds * tokensPerSecond
    const whole = charactersOf(this.#piece) * tokensPerCharacter
    if (this.#isOver) return whole
    return Math.min(whole, (bytes / (bytesPerSecond[format] ?? otherBytesPerSecond)) * tokensPerSecond)
  }
}

/** The rate at which OpenAI's price per token comes to its 1.5 cents a minute. */
const commonTokensPerSecond = 1_250 / 60
/** At the pace of a reader: about 20 tokens a second, for 16 characters. */
const tokensPerCharacter = 1.3
/** Usual rates of speech: opus 32 kbit/s, aac 64 kbit/s, flac half of the raw samples. */
const bytesPerSecond: Readonly<Record<string, number>> = { opus: 4_000, aac: 8_000, flac: 24_000 }
const otherBytesPerSecond = 16_000

function unreadable(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor sent no audio.")
}
