import { GatewayError } from '../base/errors.ts'
import { readBase64Head, readImageHead } from '../base/image-head.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { ImageAskBase, ImageMedia, ImagesAnswer, Looks, MadeImage } from '../capabilities/images.ts'
import type { MediaBytes } from '../capabilities/conversation.ts'
import type { Counted } from '../capabilities/usage.ts'
import { noAnswer } from '../wire/answer-body.ts'
import { readSize, writeSize } from '../wire/image-sizes.ts'
import { objectsIn } from '../wire/loose.ts'
import { dataUrlOf } from '../wire/media-url.ts'
import type { Call, VendorResponse, Step } from './vendor.ts'
import { contentRefused } from './verdicts.ts'

/** Bounds one image, made or given, also in base64 and as an event; the largest known are some 20 MB. */
export const imageBytesMax = 48 * 1024 * 1024

/** An image for vendors that take either a link or a `data:` URL. */
export function linkOrData(media: ImageMedia): string {
  return media.kind === 'url' ? media.url : dataUrlOf(media)
}

/** An image that came as base64, with the type that its own header tells. */
export function imageFromBase64(base64: string, mediaType: string): MadeImage {
  const head = readBase64Head(base64)
  const known = head === undefined || head === 'broken' ? mediaType : head.mediaType
  return { media: { kind: 'bytes', mediaType: known, base64 } }
}

/** The real size from the first image's own header, or the size that was asked for where that cannot be read. */
export function measure(
  [first]: readonly MadeImage[],
  asked: string | undefined,
): Pick<ImagesAnswer, 'width' | 'height'> {
  const head = first?.media.kind === 'bytes' ? readBase64Head(first.media.base64) : undefined
  if (head !== undefined && head !== 'broken') return { width: head.width, height: head.height }
  return asked === undefined ? {} : (readSize(asked) ?? {})
}

/** What an answer says about its images, for an estimate of their tokens. */
export function looksOf({ width, height }: Pick<ImagesAnswer, 'width' | 'height'>, quality: string): Looks {
  return { quality, ...(width !== undefined && height !== undefined && { size: writeSize({ width, height }) }) }
}

/** The images and what they used; where there are none, the vendor's reason. */
export type ImagesOutcome = { readonly answer: ImagesAnswer; readonly used: Counted; readonly reason?: string }

/** The list of a vendor's results. Without the list, the answer is broken, and no filter held an image back. */
export function resultsIn(list: Json | undefined): readonly JsonObject[] {
  if (!Array.isArray(list)) throw noAnswer()
  return objectsIn(list)
}

/**
 * One call for images. Where a later step fails, `count` reads its body once more for what it used. `statusOf`: for
 * vendors that refuse with a 2xx status, the status that such a body stands for.
 */
export function imageStep(
  ask: ImageAskBase,
  call: Call,
  read: (body: Uint8Array) => ImagesOutcome,
  statusOf?: (body: Uint8Array) => number,
): Step<ImagesAnswer> {
  return {
    kind: 'calls',
    calls: [{ transport: 'vendor', ...call }],
    ...(statusOf !== undefined && { statusOf: ({ body }) => statusOf(body) }),
    count: ({ body }) => read(body).used,
    next([response]) {
      const { answer, used, reason } = read(response?.body ?? new Uint8Array())
      return answer.images.length === 0 ? withheld(reason, used) : answered(ask, answer, used)
    },
  }
}

/**
 * Leaves out images beyond the number that was asked for: the hold does not cover them, and what links lead to may be
 * fetched, all of it into memory. Called before the images are counted, because the customer does not pay for what is
 * left out.
 */
export function withoutExcess({ count }: ImageAskBase, made: readonly MadeImage[]): readonly MadeImage[] {
  return made.slice(0, count)
}

/** The vendor withheld every image: its reason passes on to the client, and nothing is charged. */
function withheld(reason = '', used: Counted): Step<ImagesAnswer> {
  const message = reason === '' ? "The model's vendor made no image: its filters held it back." : reason
  const error = new GatewayError('upstream-rejected', message, { code: contentRefused })
  return { kind: 'failed', error, used: [used] }
}

/** Ends with the answer; where the client wants bytes and the vendor gave links, these are fetched first. */
function answered(ask: ImageAskBase, answer: ImagesAnswer, used: Counted): Step<ImagesAnswer> {
  const links = answer.images.flatMap(({ media }) => (media.kind === 'url' ? [media.url] : []))
  if (ask.delivery !== 'bytes' || links.length === 0) return { kind: 'answered', answer, used: [used] }
  const { passed: _, ...rest } = answer
  return {
    kind: 'calls',
    calls: links.map((url) => ({ transport: 'linked', url, bytesMax: imageBytesMax })),
    next(responses) {
      const fetched = responses.values()
      const images = answer.images.map((image) =>
        image.media.kind === 'url' ? { ...image, media: bytesOf(fetched.next().value) } : image,
      )
      return { kind: 'answered', answer: { ...rest, images }, used: [used] }
    },
  }
}

/** The image behind a link. Its type comes from its own header, because a server may call anything an image. */
export function bytesOf(response: VendorResponse | undefined): MediaBytes {
  const head = response === undefined ? undefined : readImageHead(response.body)
  if (response === undefined || head === undefined || head === 'broken') {
    throw new GatewayError('upstream-failed', "What the model's vendor made is not an image.")
  }
  return { kind: 'bytes', mediaType: head.mediaType, base64: Buffer.from(response.body).toString('base64') }
}
