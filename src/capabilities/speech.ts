import type { JsonObject } from '../base/json.ts'
import type { AskFacts } from './ask.ts'
import type { SpeechLimits } from './limits.ts'

export type SpeechAsk = AskFacts & {
  readonly capability: 'speech'
  readonly input: string
  /** Unicode code points of the input. */
  readonly characters: number
  /** As the vendor calls it. */
  readonly voice?: string
  readonly format: string
  readonly instructions?: string
  readonly speed?: number
  readonly limits: SpeechLimits
  /** Sound as events of the common protocol, instead of as it is. */
  readonly asEvents: boolean
  readonly extras: JsonObject
}
