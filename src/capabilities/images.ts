import type { JsonObject } from '../base/json.ts'
import type { AskFacts } from './ask.ts'
import type { ChatStream } from './chat.ts'
import type { Media } from './conversation.ts'
import type { ImageLimits } from './limits.ts'

/** What both ways of making pictures share. Sizes are `WxH`, whatever client and vendor write. */
export type PictureAsk = AskFacts & {
  readonly prompt: string
  readonly count: number
  /**
   * As the vendor is to make it: of the sizes it has, the nearest to what was asked for. Where it takes none, what was
   * asked for, from which a shape can be chosen. Absent: the model's own default.
   */
  readonly size?: string
  /** One of the model's own. */
  readonly quality?: string
  readonly background?: string
  readonly outputFormat?: string
  /** How the client wants to have them. */
  readonly delivery: 'url' | 'bytes'
  /** Parts of a picture shown while it is made, in a stream; 0 for none. */
  readonly partialImages: number
  readonly limits: ImageLimits
  /** By the vendor's count of tokens, or by the piece. */
  readonly sold: 'tokens' | 'pieces'
  /** Tokens of the prompt, estimated. */
  readonly textTokens: number
  /** What the client wrote, for vendors that speak its protocol. */
  readonly written: JsonObject
}

export type ImagesAsk = PictureAsk & {
  readonly capability: 'images'
  /** `native` has blocks of text and pictures, and is answered with links; `common` has a prompt. */
  readonly form: 'native' | 'common'
  readonly references: readonly GivenImage[]
  readonly negativePrompt?: string
  readonly seed?: number
  /** Whether the vendor may rewrite the prompt. */
  readonly extendsPrompt?: boolean
  readonly watermark?: boolean
}

/** A picture to work from, and the field in which the client gave it, for a complaint about it. */
export type GivenImage = { readonly media: Media; readonly at: string }

export type EditsAsk = PictureAsk & {
  readonly capability: 'edits'
  readonly images: readonly ImageFile[]
  readonly mask?: ImageFile
}

/** A file that the client sent, whose head has been read. */
export type ImageFile = {
  /** Ours, so that nothing in a client's file name reaches a vendor. */
  readonly name: string
  readonly mediaType: string
  readonly width: number
  readonly height: number
  readonly bytes: Uint8Array
}

export type MadeImage = { readonly media: Media; readonly revisedPrompt?: string }

/** Tokens as the vendor counted them; none is in two places. */
export type ImageTokens = {
  readonly input: number
  readonly cachedInput?: number
  readonly imageInput: number
  readonly output: number
  readonly imageOutput: number
}

export type ImagesAnswer = {
  readonly images: readonly MadeImage[]
  /** The real size, where it is known. */
  readonly width?: number
  readonly height?: number
  readonly tokens?: ImageTokens
  /** What a vendor of the common protocol says beside the pictures: background, quality, usage. */
  readonly said?: JsonObject
  /** Its answer as it came, while nothing in it has to be changed. */
  readonly passed?: Uint8Array
}

/** How a picture turned out, as far as that is told; `WxH`, and one of the model's qualities. */
export type Looks = { readonly size?: string; readonly quality?: string }

/** A stream of pictures on its way to the client. */
export type PictureStream = ChatStream & {
  /** What of it has come: whole pictures, and previews of those and of the next. */
  readonly shown: { readonly pictures: number; readonly previews: number; readonly looks: Looks }
}
