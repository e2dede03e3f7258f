import { GatewayError, refusedInside } from '../../base/errors.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import { charactersOf, type SoundForm, type SpeechAsk, type SpeechCodec } from '../../capabilities/speech.ts'
import type { Counted, Usage } from '../../capabilities/usage.ts'
import { SoundLength } from '../../media/sound-length.ts'
import type { Exchange } from '../../upstream/transport.ts'
import type { SoundReader } from '../../vendors/vendor.ts'
import { refusalBytesMax } from '../attempt.ts'

// Two seconds of samples for every character, as base64: far beyond the slowest speech, and an end to what has none.
const bytesPerCharacterMax = 128 * 1024
const bytesSpare = 4 * 1024 * 1024

/** The sound of one piece of a text, on its way from the vendor. */
export class PieceSound {
  readonly #exchange: Exchange
  readonly #reader: SoundReader
  readonly #piece: string
  readonly #bytesMax: number
  readonly #length = new SoundLength()
  #bytes = 0
  #first: Uint8Array | undefined
  #isOver = false
  #isHeard = false

  constructor(exchange: Exchange, reader: SoundReader, piece: string) {
    this.#exchange = exchange
    this.#reader = reader
    this.#piece = piece
    this.#bytesMax = charactersOf(piece) * bytesPerCharacterMax + bytesSpare
  }

  get form(): SoundForm {
    return this.#reader.form
  }

  /** Waits for the first sound: until then a failure is an ordinary error answer. */
  async begin(): Promise<void> {
    const type = this.#exchange.header('content-type') ?? ''
    if (type.startsWith('text/html')) throw unreadable()
    if (type.startsWith('application/json')) throw await this.#refused()
    this.#first = await this.next()
    if (this.#first === undefined) throw unreadable()
  }

  /** The next sound, or undefined at its proper end. Throws where it was cut off, which must not look like one. */
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
      const sound = this.#read(bytes)
      if (sound.length > 0) return sound
    }
    return undefined
  }

  abort(): void {
    this.#exchange.abort()
  }

  /**
   * Undefined while nothing was heard. By the character the whole piece is paid for once it flows: the vendor has made it,
   * and charges. By tokens, what was heard of it.
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

  /** What is said in the place of sound. */
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
    const sound = this.#reader.read(bytes)
    const { refusal } = this.#reader
    if (refusal !== undefined) {
      if (this.#isHeard) throw new GatewayError('upstream-failed', "The model's vendor broke off the audio.")
      throw refusedInside(refusal)
    }
    if (sound.length === 0) return sound
    this.#isHeard = true
    this.#length.push(sound, this.#reader.form)
    return sound
  }

  /** The text was read as a whole; of the sound, what came. A vendor may tell beforehand what all of it will be. */
  #estimate({ instructions = '', bound, pieces, format }: SpeechAsk, codec: SpeechCodec): Usage {
    const { usage: told } = this.#reader
    const most = Math.min((bound.output ?? 0) / pieces.length, told?.audioOutput ?? Number.POSITIVE_INFINITY)
    const audioOutput = Math.max(1, Math.min(Math.ceil(this.#soundTokens(format)), Math.floor(most)))
    return { input: told?.input ?? codec.estimateTokens(`${instructions}${this.#piece}`), audioOutput }
  }

  /** By the seconds, where the sound tells them; else a whole by its characters, and a part by its bytes. */
  #soundTokens(format: string): number {
    const { tokensPerSecond = commonTokensPerSecond } = this.#reader
    const { seconds, bytes } = this.#length
    if (seconds !== undefined) return seconds * tokensPerSecond
    const whole = charactersOf(this.#piece) * tokensPerCharacter
    if (this.#isOver) return whole
    return Math.min(whole, (bytes / (bytesPerSecond[format] ?? otherBytesPerSecond)) * tokensPerSecond)
  }
}

/** What makes OpenAI's 1.5 cents a minute. */
const commonTokensPerSecond = 1_250 / 60
/** At the pace of a reader: some 20 tokens a second, for 16 characters. */
const tokensPerCharacter = 1.3
/** Of speech, by rule of thumb: 32 and 64 kbit/s, and half of the bare samples. */
const bytesPerSecond: Readonly<Record<string, number>> = { opus: 4_000, aac: 8_000, flac: 24_000 }
const otherBytesPerSecond = 16_000

function unreadable(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor sent no audio.")
}
