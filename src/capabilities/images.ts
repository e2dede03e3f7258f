import type { JsonObject } from '../base/json.ts'
import type { AskFacts } from './ask.ts'
import type { ChatStream } from './chat.ts'
import type { Media } from './conversation.ts'
import type { ImageLimits } from './limits.ts'

/** What generations and edits have in common. Sizes are `WxH`, however the client and the vendor write them. */
export type ImageAskBase = AskFacts & {
  readonly prompt: string
  readonly count: number
  /**
   * The size that the vendor is asked for: of those it has, the nearest to the client's. Where the vendor takes no
   * size, the client's own, from which an aspect ratio can be chosen. Absent: the model's default.
   */
  readonly size?: string
  /** One of the model's qualities. */
  readonly quality?: string
  readonly background?: string
  readonly outputFormat?: string
  /** How the client wants to get the images. */
  readonly delivery: 'url' | 'bytes'
  /** How many previews of an image a stream shows while it is made; 0 for none. */
  readonly partialImages: number
  readonly limits: ImageLimits
  /** Whether the model is sold by the vendor's count of tokens or by the image. */
  readonly sold: 'tokens' | 'pieces'
  /** The prompt's tokens, estimated. */
  readonly textTokens: number
  /** The client's own fields, for vendors that speak its protocol. */
  readonly written: JsonObject
}

export type ImagesAsk = ImageAskBase & {
  readonly capability: 'images'
  /** `native` has blocks of text and images, and is answered with links; `common` has a prompt. */
  readonly form: 'native' | 'common'
  readonly references: readonly GivenImage[]
  readonly negativePrompt?: string
  readonly seed?: number
  /** Whether the vendor may rewrite the prompt. */
  readonly extendsPrompt?: boolean
  readonly watermark?: boolean
}

/** Where the bytes of an image are. On the paths of images no vendor names one by an id. */
export type ImageMedia = Exclude<Media, { kind: 'file' }>

/** A reference image, and the field in which the client gave it, for errors about it. */
export type GivenImage = { readonly media: ImageMedia; readonly at: string }

export type EditsAsk = ImageAskBase & {
  readonly capability: 'edits'
  readonly images: readonly ImageFile[]
  readonly mask?: ImageFile
}

/** An image file that the client sent, after its head was read. */
export type ImageFile = {
  /** Our own name, so that nothing in a client's file name reaches a vendor. */
  readonly name: string
  readonly mediaType: string
  readonly width: number
  readonly height: number
  readonly bytes: Uint8Array
}

export type MadeImage = { readonly media: ImageMedia; readonly revisedPrompt?: string }

/** Tokens as the vendor counted them; the fields never overlap. */
export type ImageTokens = {
  readonly input: number
  readonly cachedInput?: number
  readonly imageInput: number
  readonly output: number
  readonly imageOutput: number
}

export type ImagesAnswer = {
  readonly images: readonly MadeImage[]
  /** The images' real size, where it is known. */
  readonly width?: number
  readonly height?: number
  readonly tokens?: ImageTokens
  /** The fields that a vendor of the common protocol sends beside the images: background, quality, usage. */
  readonly said?: JsonObject
  /** The vendor's response as it came, where nothing in it has to be changed. */
  readonly passed?: Uint8Array
}

/** How an image turned out, as far as the vendor tells: its size as `WxH`, and one of the model's qualities. */
export type Looks = { readonly size?: string; readonly quality?: string }

/** A stream of images to the client. */
export type ImageStream = ChatStream & {
  /** What has arrived so far: finished images, and previews of those and of the next one. */
  readonly shown: { readonly images: number; readonly previews: number; readonly looks: Looks }
}
