import { GatewayError } from '../../base/errors.ts'
import { newAttemptId } from '../../base/ids.ts'
import type { SpeechAsk, SpeechCodec } from '../../capabilities/speech.ts'
import type { AttemptRecord } from '../../store/requests.ts'
import type { SpeechAdapter } from '../../vendors/vendor.ts'
import { attempt, contextOf, discreet, type CallParts, type Failed } from '../attempt.ts'
import { countLegs, type Leg } from '../legs.ts'
import { pauseBefore } from '../pause.ts'
import type { Relay } from '../relay.ts'
import type { Routed } from '../stages.ts'
import { PieceSound } from './piece.ts'
import type { Shaper } from './shaper.ts'

/** A later piece that fails before it is heard is asked for again: the pieces before it cannot be taken back. */
const triesMax = 3

export type Speaking = {
  readonly ask: SpeechAsk
  readonly codec: SpeechCodec
  readonly adapter: SpeechAdapter
  readonly shaper: Shaper
}

/** Says the pieces of a text one after another, as one sound. */
export class SpeechRelay implements Relay {
  readonly legs: Leg[] = []
  readonly failed: AttemptRecord[] = []
  readonly #parts: CallParts
  readonly #routed: Routed
  readonly #speaking: Speaking
  #current: PieceSound | undefined
  #said = 0
  #isOver = false

  constructor(parts: CallParts, routed: Routed, speaking: Speaking) {
    this.#parts = parts
    this.#routed = routed
    this.#speaking = speaking
  }

  /** Asks for the first piece and waits until it is heard. Where that fails, another channel may do better. */
  async start(): Promise<Failed | undefined> {
    return this.#open(this.#routed)
  }

  async begin(): Promise<void> {}

  async next(): Promise<Uint8Array | undefined> {
    const { ask, codec, shaper } = this.#speaking
    while (!this.#isOver) {
      const sound = await this.#nextSound()
      if (sound === undefined) this.#isOver = true
      const shaped = sound === undefined ? await shaper.end() : await shaper.push(sound.bytes, sound.form)
      if (shaped.length > 0) return ask.asEvents ? codec.writeDelta(shaped) : shaped
    }
    return undefined
  }

  /** `next` throws wherever a piece does not come to its end. */
  complete(): void {}

  closing(): Uint8Array {
    const { ask, codec } = this.#speaking
    return ask.asEvents ? codec.writeDone(countLegs(this.legs)?.usage) : new Uint8Array()
  }

  abort(): void {
    this.#current?.abort()
    this.#speaking.shaper.close()
  }

  async #nextSound() {
    const { ask, shaper } = this.#speaking
    for (;;) {
      const current = this.#current ?? (await this.#openNext())
      const bytes = await current.next().catch((thrown: unknown) => {
        throw thrown instanceof GatewayError ? discreet(thrown, this.#routed) : thrown
      })
      if (bytes !== undefined) return { bytes, form: current.form }
      shaper.endPiece()
      this.#current = undefined
      if (++this.#said === ask.pieces.length) return undefined
    }
  }

  async #openNext(): Promise<PieceSound> {
    let { connection } = this.#routed
    for (let tries = 1; ; tries++) {
      // Whoever has left is not waited for with a call that costs something.
      if (this.#routed.signal.aborted) throw new GatewayError('client-gone', 'The client hung up.')
      const failure = await this.#open({ ...this.#routed, attemptId: newAttemptId(), connection })
      if (failure === undefined && this.#current !== undefined) return this.#current
      if (failure === undefined) throw new GatewayError('bug', 'a piece that was opened is not there')
      this.failed.push(...failure.attempts)
      if (failure.retry === 'no' || tries === triesMax) throw failure.error
      if (failure.retry === 'anew') connection = 'new'
      else if (!(await pauseBefore(tries, failure.error, this.#routed.signal))) throw failure.error
    }
  }

  async #open(routed: Routed): Promise<Failed | undefined> {
    const { ask, codec, adapter } = this.#speaking
    const piece = ask.pieces[this.#said] ?? ''
    const saying = adapter.say(ask, piece, contextOf(routed, this.#parts.tenantMac))
    const opened = await attempt(this.#parts, routed, saying.call, async (exchange) => {
      const sound = new PieceSound(exchange, saying.openReader(), piece)
      await sound.begin()
      return sound
    })
    if (opened.kind === 'failed') return opened
    const sound = opened.accepted
    this.#current = sound
    this.legs.push({ attemptId: routed.attemptId, count: () => sound.count(ask, codec) })
    return undefined
  }
}
