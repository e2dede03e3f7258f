import type { JsonObject } from '../base/json.ts'
import type { AskFacts } from './ask.ts'
import type { VideoKind, VideoLimits } from './limits.ts'
import type { Usage } from './usage.ts'

/** A film to be made. What billing follows is read out of the request; the rest passes on as the client wrote it. */
export type VideoAsk = AskFacts & {
  readonly capability: 'video'
  readonly kind: VideoKind
  /** Whole seconds; the longest the model makes where it may choose itself. */
  readonly seconds: number
  /** `-1` was asked: the model chooses the length. */
  readonly isFreeLength: boolean
  /** In lower case: `720p`. */
  readonly resolution: string
  readonly ratio: string
  readonly sound: boolean
  /** Films that the client brings: some vendors charge for theirs too. */
  readonly hasInputVideo: boolean
  readonly input: JsonObject
  readonly parameters: JsonObject
  readonly limits: VideoLimits
}

/** A task as clients see it. The first two grow, the last three never change; see `tasks/state.ts`. */
export type TaskState = 'submitted' | 'running' | 'succeeded' | 'failed' | 'cancelled'

/** What a vendor says of a task, in our words. Unknown words keep the state; `lost`: the vendor does not know the task. */
export type VideoNews = {
  readonly state: TaskState | 'expired' | 'lost' | 'unknown-word'
  /** The vendor's own word for it. */
  readonly word: string
  /** The vendor's own record, shown to the client beneath our fields. */
  readonly record: JsonObject
  readonly result?: VideoResult
  /** What it used, at success. */
  readonly used?: Usage
  readonly error?: { readonly code: string; readonly message: string }
}

export type VideoResult = {
  readonly videoUrl: string
  readonly lastFrameUrl?: string
  /** Only with the vendor's key can it be fetched: it is kept by us and given out under a link of ours. */
  readonly needsKey: boolean
  readonly seconds?: number
  readonly resolution?: string
  readonly ratio?: string
  readonly seed?: number
}
