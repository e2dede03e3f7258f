import type { JsonObject } from '../base/json.ts'
import type { AskFacts } from './ask.ts'
import type { VideoKind, VideoLimits } from './limits.ts'
import type { Usage } from './usage.ts'

/** A video to be made. What billing depends on is read from the request; the rest passes on as the client wrote it. */
export type VideoAsk = AskFacts & {
  readonly capability: 'video'
  readonly kind: VideoKind
  /** Whole seconds; the model's maximum where the model chooses the length. */
  readonly seconds: number
  /** The client asked for `-1`: the model chooses the length. */
  readonly isFreeLength: boolean
  /** In lower case: `720p`. */
  readonly resolution: string
  readonly ratio: string
  readonly sound: boolean
  /** The client gives videos of its own, for whose seconds some vendors charge too. */
  readonly hasInputVideo: boolean
  /** The prompt without the flags that vendors would parse out of it. Empty where the client gives only images. */
  readonly prompt: string
  /** The images, videos and audio that the client gives, in its order, whatever the form of the request. */
  readonly media: readonly VideoMedia[]
  /** The draft of which this is the final video, as the client names it. Its owner has yet to be checked. */
  readonly draftOf?: string
  /** The field in which the client gave that id, for the error about it. */
  readonly draftAt?: string
  /** The same seed may make the same video again. Absent where the model chooses one. */
  readonly seed?: number
  readonly input: JsonObject
  readonly parameters: JsonObject
  /** The field in which the client gave each parameter, for errors about it; without one, it was in `parameters`. */
  readonly parametersAt?: Readonly<Record<string, string>>
  readonly limits: VideoLimits
}

export type VideoMedia = {
  readonly role: VideoRole
  /** http(s), or `data:` for images and audio. */
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

/** An ask, and how its client wants to learn of the end. */
export type VideoRequest = VideoAsk & {
  readonly webhookUrl?: string
  /** Whether the client waits for the end, for up to `timeoutSeconds`. */
  readonly wait: boolean
  readonly timeoutSeconds: number
}

/** What is kept of an ask while its task runs, because vendors' records leave it out and billing depends on it. */
export type VideoFacts = Pick<
  VideoAsk,
  'kind' | 'seconds' | 'resolution' | 'ratio' | 'sound' | 'hasInputVideo' | 'seed'
>

/** A task's states as clients see them. The first two move on, the last three never change; see `tasks/state.ts`. */
export const taskStates = ['submitted', 'running', 'succeeded', 'failed', 'cancelled'] as const
export type TaskState = (typeof taskStates)[number]

/** What a vendor reports about a task. An `unknown-word` keeps the state; `lost`: the vendor does not know the task. */
export type VideoNews = {
  readonly state: TaskState | 'expired' | 'lost' | 'unknown-word'
  /** The vendor's own word for the state. */
  readonly word: string
  /** The vendor's own record, shown to the client beneath our fields. */
  readonly record: JsonObject
  readonly result?: VideoResult
  /** What the task used, once it has succeeded. */
  readonly used?: Usage
  readonly error?: { readonly code: string; readonly message: string }
}

export type VideoResult = {
  /** Where `needsKey` is set, this may be a path below the channel's own address. */
  readonly videoUrl: string
  readonly lastFrameUrl?: string
  /** The video can be fetched only with the vendor's key, so we keep a copy and give out a link of ours. */
  readonly needsKey: boolean
  readonly seconds?: number
  readonly resolution?: string
  readonly ratio?: string
  readonly seed?: number
  /** When the vendor finished it, in unix milliseconds. The expiry of its links counts from then. */
  readonly madeAt?: number
}
