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
  /** What it should show, without the flags that vendors would read out of it. Empty where pictures say it all. */
  readonly prompt: string
  /** What the client brings, in its order, whatever the form it came in. */
  readonly media: readonly VideoMedia[]
  /** The draft that this is the final of, as the client names it: whose task that is has to be checked. */
  readonly draftOf?: string
  /** Where the client wrote that, for the complaint about it. */
  readonly draftAt?: string
  /** The same seed may make the same film again. Absent where the model is to choose one. */
  readonly seed?: number
  readonly input: JsonObject
  readonly parameters: JsonObject
  readonly limits: VideoLimits
}

export type VideoMedia = {
  readonly role: VideoRole
  /** http(s), or `data:` for pictures and sound. */
  readonly url: string
}

export type VideoRole =
  | 'first-frame'
  | 'last-frame'
  | 'first-clip'
  | 'driving-audio'
  | 'reference-image'
  | 'reference-video'
  | 'reference-audio'

/** An ask, and what its client wants to be told. */
export type VideoRequest = VideoAsk & {
  readonly webhookUrl?: string
  /** The client waits so long for the end, where it waits. */
  readonly wait: boolean
  readonly timeoutSeconds: number
}

/** What has to be remembered of an ask while its task runs: what records leave out, and billing follows. */
export type VideoFacts = Pick<
  VideoAsk,
  'kind' | 'seconds' | 'resolution' | 'ratio' | 'sound' | 'hasInputVideo' | 'seed'
>

/** A task as clients see it. The first two grow, the last three never change; see `tasks/state.ts`. */
export const taskStates = ['submitted', 'running', 'succeeded', 'failed', 'cancelled'] as const
export type TaskState = (typeof taskStates)[number]

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
  /** Where it needs the key, an adapter may name a path below the channel's own address. */
  readonly videoUrl: string
  readonly lastFrameUrl?: string
  /** Only with the vendor's key can it be fetched: it is kept by us and given out under a link of ours. */
  readonly needsKey: boolean
  readonly seconds?: number
  readonly resolution?: string
  readonly ratio?: string
  readonly seed?: number
  /** Unix milliseconds: when the vendor had made it. Its links are counted from then. */
  readonly madeAt?: number
}
