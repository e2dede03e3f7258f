import type { JsonObject } from '../base/json.ts'
import type { AskFacts } from './ask.ts'
import type { Media } from './conversation.ts'

/** What both ways of making pictures share. Sizes are `WxH`, whatever client and vendor write. */
type PictureAsk = AskFacts & {
  readonly prompt: string
  readonly count: number
  /** Absent: the model's own default. */
  readonly size?: string
  readonly quality?: string
  readonly background?: string
  readonly outputFormat?: string
  /** How the client wants to have them. */
  readonly delivery: 'url' | 'bytes'
  /** Parts of a picture shown while it is made, in a stream; 0 for none. */
  readonly partialImages: number
  readonly user?: string
  /** What else the client wrote, for vendors that speak its protocol. */
  readonly extras: JsonObject
}

export type ImagesAsk = PictureAsk & {
  readonly capability: 'images'
  readonly references: readonly Media[]
  readonly negativePrompt?: string
  readonly seed?: number
  /** Whether the vendor may rewrite the prompt. */
  readonly extendsPrompt?: boolean
  readonly watermark?: boolean
}

export type EditsAsk = PictureAsk & {
  readonly capability: 'edits'
  readonly images: readonly ImageFile[]
  readonly mask?: ImageFile
}

/** A file that the client sent, whose head has been read. */
export type ImageFile = {
  readonly name: string
  readonly mediaType: string
  readonly width: number
  readonly height: number
  readonly bytes: Uint8Array
}

export type MadeImage = { readonly media: Media; readonly revisedPrompt?: string }

export type ImagesAnswer = {
  readonly images: readonly MadeImage[]
  /** The real size, where it is known. */
  readonly width?: number
  readonly height?: number
  /** As the vendor counted, for clients that want to see it in its words. */
  readonly tokens?: { readonly textInput: number; readonly imageInput: number; readonly output: number }
}
