import { GatewayError } from '../../base/errors.ts'
import { abortSignalOf } from '../../base/http/client-signal.ts'
import { newAttemptId } from '../../base/ids.ts'
import { zeroNano } from '../../base/money.ts'
import { Pump, type Outlet } from '../../base/pour.ts'
import type { SpeechAsk, SpeechCodec } from '../../capabilities/speech.ts'
import type { AttemptRecord } from '../../store/requests.ts'
import type { SpeechAdapter } from '../../vendors/vendor.ts'
import { attemptRecord } from '../attempt-records.ts'
import { attempt, contextOf, type CallParts } from '../attempt.ts'
import { failedInside } from '../failed.ts'
import { countLegs, type Leg } from '../legs.ts'
import { pauseBefore } from '../pause.ts'
import type { Relay } from '../relay.ts'
import type { Failed, Routed } from '../stages.ts'
import type { AudioConverter } from './audio-converter.ts'
import { PieceAudio } from './piece.ts'

/** A later piece that fails before its first audio is asked for again: the pieces before it cannot be taken back. */
const triesMax = 3

// The longest input that is accepted comes to 200 MB of samples at an ordinary pace.
const audioBytesMax = 512 * 1024 * 1024

export type Speaking = {
  readonly ask: SpeechAsk
  readonly codec: SpeechCodec
  readonly adapter: SpeechAdapter
  readonly converter: AudioConverter
}

/** Speaks the pieces of a text one after another, as one audio stream. */
export class SpeechRelay implements Relay {
  readonly legs: Leg[] = []
  readonly #failed: AttemptRecord[] = []
  readonly #parts: CallParts
  readonly #routed: Routed
  readonly #speaking: Speaking
  readonly #pump = new Pump(() => this.#next())
  #current: PieceAudio | undefined
  /** The call that is under way and has given no audio yet. */
  #opening: Routed | undefined
  /** Ends that call. Made only from the second piece on: while the first one opens, only its client can end it. */
  #stop: Stop | undefined
  #said = 0
  #isOver = false
  #isLeft = false
  /** Audio that is ready and not given out yet. */
  #held: Uint8Array[] = []
  #bytes = 0
  /** How many of the legs have been given out, at least in part. */
  #legsGiven = 0
  /** Why the audio broke off, or that `abort` ended it. */
  #failure: { readonly thrown: unknown } | undefined

  constructor(parts: CallParts, routed: Routed, speaking: Speaking) {
    this.#parts = parts
    this.#routed = routed
    this.#speaking = speaking
  }

  /** Includes the call that is opening: if it were missing when this is settled, it would never be recorded. */
  get failed(): readonly AttemptRecord[] {
    if (this.#opening === undefined) return this.#failed
    return [...this.#failed, attemptRecord(this.#opening, { status: 0, vendorCost: zeroNano, delivered: false })]
  }

  /** Asks for the first piece and waits for its first audio. Where that fails, another channel may be tried. */
  async start(): Promise<Failed | undefined> {
    const opened = await this.#open(this.#routed)
    return opened instanceof PieceAudio ? undefined : opened
  }

  /**
   * Makes at least `bytesMin` of the answer, or all of it, before any of it goes out; throws where it breaks off before
   * that. An encoder gives nothing before a frame is full, so audio from the vendor is not yet something to answer
   * with.
   */
  async prepare(bytesMin: number): Promise<'part' | 'whole'> {
    while (this.#bytes < bytesMin) {
      const made = await this.#make()
      if (made !== undefined) this.#held.push(made)
      else if (this.#held.length > 0) return 'whole'
      else throw new GatewayError('upstream-failed', "The model's vendor sent no audio.")
    }
    return 'part'
  }

  /** All that was prepared; it counts as given to the client from here on. */
  takePrepared(): Uint8Array[] {
    const prepared = this.#held
    this.#held = []
    this.#legsGiven = this.legs.length
    return prepared
  }

  pour(outlet: Outlet): void {
    this.#pump.pour(outlet)
  }

  pause(): void {
    this.#pump.pause()
  }

  /** Throws where a piece does not come to its proper end. */
  async #next(): Promise<Uint8Array | undefined> {
    const bytes = this.#held.shift() ?? (await this.#make())
    if (bytes !== undefined) this.#legsGiven = this.legs.length
    return bytes
  }

  left(): void {
    this.#isLeft = true
  }

  closing(): Uint8Array {
    const { ask, codec } = this.#speaking
    return ask.asEvents ? codec.writeDone(countLegs(this.legs)?.usage) : new Uint8Array()
  }

  abort(): void {
    this.#failure ??= { thrown: new GatewayError('client-gone', 'The call was ended.') }
    this.#stop?.end()
    this.#current?.abort()
    this.#speaking.converter.close()
  }

  async #make(): Promise<Uint8Array | undefined> {
    this.#checkUnbroken()
    try {
      while (!this.#isOver) {
        const audio = await this.#nextAudio()
        this.#checkUnbroken() // an encoder that is opened after `abort` would never be closed
        if (audio === undefined) this.#isOver = true
        const { converter } = this.#speaking
        const shaped = audio === undefined ? await converter.end() : await converter.push(audio.bytes, audio.form)
        if (shaped.length > 0) return this.#written(shaped)
      }
      return undefined
    } catch (cause) {
      this.#failure ??= { thrown: cause } // after `abort` only the encoder has failed, because it was closed
      const { thrown } = this.#failure
      if (this.#legsGiven === 0 || this.#hasNoClient()) throw thrown
      // A client that has got a part is also given what the encoder still holds.
      const rest = await this.#speaking.converter.end().catch(() => new Uint8Array())
      if (rest.length > 0) return this.#written(rest)
      throw thrown
    }
  }

  #checkUnbroken(): void {
    if (this.#failure !== undefined) throw this.#failure.thrown
  }

  #written(audio: Uint8Array): Uint8Array {
    const { ask, codec } = this.#speaking
    this.#bytes += audio.length
    if (this.#bytes > audioBytesMax) {
      throw new GatewayError('upstream-failed', "The model's vendor sent more audio than is allowed.")
    }
    return ask.asEvents ? codec.writeDelta(audio) : audio
  }

  /** After a failure, only legs that were given out are owed; after the client left, all that the vendor sent. */
  #isOwed(leg: number): boolean {
    return leg < this.#legsGiven || this.#failure === undefined || this.#hasNoClient()
  }

  #hasNoClient(): boolean {
    return this.#isLeft || this.#routed.signal.aborted
  }

  async #nextAudio() {
    const { ask, converter } = this.#speaking
    for (;;) {
      const current = this.#current ?? (await this.#openNext())
      const bytes = await current.next().catch((thrown: unknown) => {
        throw thrown instanceof GatewayError ? failedInside(this.#parts, this.#routed, thrown) : thrown
      })
      if (bytes !== undefined) return { bytes, form: current.form }
      this.#parts.channels().answered(this.#routed.route)
      converter.endPiece()
      this.#current = undefined
      if (++this.#said === ask.pieces.length) return undefined
    }
  }

  async #openNext(): Promise<PieceAudio> {
    let { connection } = this.#routed
    this.#stop ??= stopBeside(abortSignalOf(this.#routed.signal))
    const { signal } = this.#stop
    for (let tries = 1; ; tries++) {
      this.#checkUnbroken()
      // No further call is paid for once the client has left.
      if (this.#hasNoClient()) throw new GatewayError('client-gone', 'The client hung up.')
      const opened = await this.#open({ ...this.#routed, signal, attemptId: newAttemptId(), connection })
      if (opened instanceof PieceAudio) return opened
      const { retry, error } = opened
      if (retry === 'no' || tries === triesMax) throw error
      if (retry === 'anew') connection = 'new'
      else if (!(await pauseBefore(tries, error, [signal, this.#parts.stopping]))) throw error
    }
  }

  /** Asks for the next piece, which is the current one once its first audio is there. */
  async #open(routed: Routed): Promise<PieceAudio | Failed> {
    const { ask, codec, adapter } = this.#speaking
    const piece = ask.pieces[this.#said] ?? ''
    const saying = adapter.say(ask, piece, contextOf(routed, this.#parts.tenantLabel))
    this.#opening = routed
    try {
      const opened = await attempt(this.#parts, routed, saying.call, async (exchange) => {
        const audio = new PieceAudio(
          exchange,
          saying.openReader((name) => exchange.header(name)),
          piece,
        )
        await audio.begin()
        return audio
      })
      if (opened.kind === 'failed') {
        this.#failed.push(...opened.attempts)
        return opened
      }
      const { accepted } = opened
      if (this.#failure !== undefined) accepted.abort() // `abort` was called while this call was opening
      this.#current = accepted
      const { attemptId } = routed
      const count = () => accepted.count(ask, codec)
      const leg = this.legs.length
      this.legs.push({ attemptId, made: count, count: () => (this.#isOwed(leg) ? count() : undefined) })
      return accepted
    } finally {
      this.#opening = undefined
    }
  }
}

type Stop = { readonly signal: AbortSignal; end(): void }

/** A signal that aborts with another one, or when `end` is called. */
function stopBeside(other: AbortSignal): Stop {
  const own = new AbortController()
  return { signal: AbortSignal.any([other, own.signal]), end: () => own.abort() }
}
