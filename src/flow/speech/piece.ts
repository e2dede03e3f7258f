import { GatewayError } from '../../base/errors.ts'
import { charactersOf, type SoundForm, type SpeechAsk, type SpeechCodec } from '../../capabilities/speech.ts'
import type { Counted, Usage } from '../../capabilities/usage.ts'
import type { Exchange } from '../../upstream/transport.ts'
import type { SoundReader } from '../../vendors/vendor.ts'
import { RefusedInside } from '../attempt.ts'

// Two seconds of samples for every character, as base64: far beyond the slowest speech, and an end to what has none.
const bytesPerCharacterMax = 128 * 1024
const bytesSpare = 4 * 1024 * 1024

/** The sound of one piece of a text, on its way from the vendor. */
export class PieceSound {
  readonly #exchange: Exchange
  readonly #reader: SoundReader
  readonly #piece: string
  readonly #bytesMax: number
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
    if (/^(?:text\/html|application\/json)/.test(type)) throw unreadable()
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
        if (!this.#reader.ended) throw new GatewayError('upstream-failed', "The model's vendor broke off the sound.")
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

  /** Undefined while nothing was heard. Once it flows the whole piece is paid for: the vendor has made it, and charges. */
  count(ask: SpeechAsk, codec: SpeechCodec): Counted | undefined {
    if (!this.#isHeard) return undefined
    const { usage: told } = this.#reader
    const basis = this.#isOver && told !== undefined ? 'vendor' : 'estimated'
    if (ask.soldBy === 'token') return { usage: told ?? this.#estimate(ask, codec), basis }
    const usage = { character: charactersOf(this.#piece) }
    return told === undefined ? { usage, basis } : { usage, basis, vendorUsage: told }
  }

  #read(bytes: Uint8Array): Uint8Array {
    this.#bytes += bytes.length
    if (this.#bytes > this.#bytesMax) {
      this.#exchange.abort()
      throw new GatewayError('upstream-failed', "The model's vendor sent more than was asked of it.")
    }
    const sound = this.#reader.read(bytes)
    const { refusal } = this.#reader
    if (refusal !== undefined) {
      if (this.#isHeard) throw new GatewayError('upstream-failed', "The model's vendor broke off the sound.")
      throw new RefusedInside(refusal)
    }
    this.#isHeard ||= sound.length > 0
    return sound
  }

  /** By the characters said, at the pace of a reader: vendors count some 20 tokens a second, for 16 characters. */
  #estimate({ instructions = '', bound, pieces }: SpeechAsk, codec: SpeechCodec): Usage {
    const most = (bound.output ?? 0) / pieces.length
    const audioOutput = Math.min(Math.ceil(charactersOf(this.#piece) * tokensPerCharacter), Math.floor(most))
    return { input: codec.estimateTokens(`${instructions}${this.#piece}`), audioOutput }
  }
}

const tokensPerCharacter = 1.3

function unreadable(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor sent no sound.")
}
