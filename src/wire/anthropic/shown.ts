import type { JsonObject } from '../../base/json.ts'
import type { Finish, Media } from '../../capabilities/conversation.ts'
import { objectIn } from '../loose.ts'
import { dataUrlOf } from '../media-url.ts'

/** What the client sees of the thinking. A client that asked for none expects its answer in the first block. */
export type ThinkingDisplay = 'shown' | 'omitted' | 'none'

export function thinkingDisplayFor(body: JsonObject): ThinkingDisplay {
  const { type, display } = objectIn(body['thinking'])
  if (type === undefined || type === 'disabled') return 'none'
  return display === 'omitted' ? 'omitted' : 'shown'
}

type Ending = {
  readonly finish: Finish | undefined
  readonly stopSequence: string | undefined
  /** Whether the reply has a refusal or a call, which clients act on even where the vendor gave an ordinary stop. */
  readonly isRefused: boolean
  readonly hasCalls: boolean
}

/** The fields that say how a message ended. */
export function writeEnding({ finish, stopSequence, isRefused, hasCalls }: Ending): JsonObject {
  const reason = stopReasonOf(isRefused && finish === 'stop' ? 'refusal' : finish, hasCalls)
  return {
    stop_reason: reason,
    stop_sequence: stopSequence ?? null,
    stop_details: reason === 'refusal' ? { type: 'refusal', category: null, explanation: null } : null,
  }
}

function stopReasonOf(finish: Finish | undefined, hasCalls: boolean): string {
  switch (finish) {
    case 'length':
      return 'max_tokens'
    case 'refusal':
      return 'refusal'
    case 'pause':
      return 'pause_turn'
    case 'stop-sequence':
      return hasCalls ? 'tool_use' : 'stop_sequence'
    case 'stop':
    case 'tool-calls':
    case undefined:
      return hasCalls ? 'tool_use' : 'end_turn'
  }
}

/** This protocol's models produce no images, so an image is written as a link in the text. */
export function writeImageText(media: Media): string {
  if (media.kind === 'bytes') return `![image](${dataUrlOf(media)})`
  return media.kind === 'url' ? `![image](${media.url})` : `[image ${media.id}]`
}
