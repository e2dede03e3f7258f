import type { GatewayError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { ReceivedRequest, AskFacts } from './ask.ts'
import type { ModelTraits, SpeechLimits } from './limits.ts'
import type { Usage } from './usage.ts'

export type SpeechAsk = AskFacts & {
  readonly capability: 'speech'
  /** The text, split into pieces that the model accepts; joined, they are exactly the client's input. */
  readonly pieces: readonly string[]
  /** The vendor's name of the voice. */
  readonly voice?: string
  /** What the client gets, which may differ from what the vendor makes. */
  readonly format: string
  readonly instructions?: string
  readonly speed?: number
  readonly limits: SpeechLimits
  /** By the character, or by the tokens of text and audio, which the vendor then has to count. */
  readonly soldBy: 'character' | 'token'
  /** The client gets the audio in events of the common protocol instead of as plain bytes. */
  readonly asEvents: boolean
  readonly extras: JsonObject
}

/** The form in which a vendor sends audio: as the client wants it, or still to be converted into that. */
export type AudioForm =
  | { readonly kind: 'ready' }
  | { readonly kind: 'wav' }
  /** Bare samples: 16 bits, little-endian, one channel. */
  | { readonly kind: 'pcm'; readonly rate: number }

/** Speech requests and responses in one protocol. */
export type SpeechCodec = {
  /** Throws bad-request with the field at fault. */
  readAsk(asked: ReceivedRequest, lookUp: (model: string) => ModelTraits): SpeechAsk
  /** Estimates the tokens of a text, for when the vendor reported none. */
  estimateTokens(text: string): number
  contentTypeOf(ask: SpeechAsk): string
  /** Writes audio as an event, where the client asked for events. */
  writeDelta(audio: Uint8Array): Uint8Array
  writeDone(usage: Usage | undefined): Uint8Array
  /** Undefined where the client gets plain audio, which can only be cut off. */
  writeStreamError(ask: SpeechAsk, error: GatewayError): Uint8Array | undefined
}

/** Unicode code points: what customers pay for. */
export function charactersOf(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
