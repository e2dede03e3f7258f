import type { GatewayError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Asked, AskFacts } from './ask.ts'
import type { ModelTraits, SpeechLimits } from './limits.ts'
import type { Usage } from './usage.ts'

export type SpeechAsk = AskFacts & {
  readonly capability: 'speech'
  /** What is to be said, in pieces that the model takes; joined they are the client's input to the last character. */
  readonly pieces: readonly string[]
  /** As the vendor calls it. */
  readonly voice?: string
  /** What the client gets, which need not be what the vendor makes. */
  readonly format: string
  readonly instructions?: string
  readonly speed?: number
  readonly limits: SpeechLimits
  /** By the character, or by the tokens of text and sound, which the vendor then has to count. */
  readonly soldBy: 'character' | 'token'
  /** Sound as events of the common protocol, instead of as it is. */
  readonly asEvents: boolean
  readonly extras: JsonObject
}

/** The form in which a vendor's sound comes: as the client wants it, or still to be made into that. */
export type SoundForm =
  | { readonly kind: 'ready' }
  | { readonly kind: 'wav' }
  /** Bare samples, 16 bits with the lower byte first, one channel. */
  | { readonly kind: 'pcm'; readonly rate: number }

/** One protocol as speech is asked for in it. */
export type SpeechCodec = {
  /** Throws bad-request with the field at fault. */
  readAsk(asked: Asked, lookUp: (model: string) => ModelTraits): SpeechAsk
  /** Tokens of a text, for when the vendor counted none. */
  estimateTokens(text: string): number
  contentTypeOf(ask: SpeechAsk): string
  /** Sound as an event, where the client asked for events. */
  writeDelta(sound: Uint8Array): Uint8Array
  writeDone(usage: Usage | undefined): Uint8Array
  /** Undefined where the client gets bare sound, which can only be cut off. */
  writeStreamError(ask: SpeechAsk, error: GatewayError): Uint8Array | undefined
}

/** Unicode code points: what customers pay for. */
export function charactersOf(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
