import type { Artifacts } from '../../artifacts/artifacts.ts'
import { abortSignalOf } from '../../base/http/client-signal.ts'
import { countImages } from '../../capabilities/image-tokens.ts'
import type {
  EditsAsk,
  ImagesAnswer,
  ImagesAsk,
  MadeImage,
  ImageAskBase,
  ImageStream,
} from '../../capabilities/images.ts'
import type { Counted } from '../../capabilities/usage.ts'
import { imageBytesMax } from '../../vendors/images.ts'
import { answerBytesMax, fetchInTime, type CallParts } from '../attempt.ts'
import type { Job } from '../job.ts'
import type { Following } from '../open-relay.ts'
import type { Routed } from '../stages.ts'
import { mediaJob, type MediaCodec, type MediaJob } from './job.ts'

export type ImageCodec<Ask extends ImageAskBase> = MediaCodec<Ask, ImagesAnswer> & {
  readonly stream: { pass(ask: Ask): ImageStream }
}

type ImageParts = { readonly artifacts: Artifacts }
type Way = { readonly parts: CallParts; readonly routed: Routed }

export function imagesJob(parts: ImageParts, codec: ImageCodec<ImagesAsk>): Job {
  return mediaJob({
    ...shared(parts, codec, ({ references }) => references.length),
    capability: 'images',
    adapterOf: (vendor) => vendor.images,
  })
}

export function editsJob(parts: ImageParts, codec: ImageCodec<EditsAsk>): Job {
  return mediaJob({
    ...shared(parts, codec, ({ images }) => images.length),
    capability: 'edits',
    adapterOf: (vendor) => vendor.edits,
  })
}

function shared<Ask extends ImageAskBase>(
  parts: ImageParts,
  codec: ImageCodec<Ask>,
  referencesOf: (ask: Ask) => number,
): Pick<MediaJob<Ask, ImagesAnswer>, 'codec' | 'finish' | 'answerBytesMax' | 'follow'> {
  return {
    codec,
    answerBytesMax: ({ count }) => Math.max(answerBytesMax, Math.min(count * imageBytesMax, imagesBytesMax)),
    finish: (ask, answer, way) => deliver(parts, ask, answer, way),
    follow(ask, attemptId) {
      const events = codec.stream.pass(ask)
      const leg = { attemptId, count: () => countStream(ask, events, referencesOf(ask)) }
      return { events, leg, bytesMax: bytesMaxOfStream(ask) }
    },
  }
}

/** The limit for all images of one answer: about ten of the largest known, in base64. */
const imagesBytesMax = 256 * 1024 * 1024

function bytesMaxOfStream({ count, partialImages }: ImageAskBase): Following['bytesMax'] {
  return { event: imageBytesMax, stream: count * (partialImages + 1) * imageBytesMax }
}

/** The last image brings the vendor's count. A client cut off before it pays for the images and previews that came. */
function countStream(
  ask: ImageAskBase,
  { facts, shown: { images, previews, looks } }: ImageStream,
  references: number,
): Counted | undefined {
  if (facts.outputEvents === 0) return undefined
  // Where images are sold by the piece, one is the least that can be charged.
  const made = ask.sold === 'pieces' ? Math.max(1, images) : images
  const tokens = facts.ended ? facts.usage : undefined
  const counted = countImages(ask, { made, previews, looks, tokens, references })
  return facts.ended ? counted : { ...counted, basis: 'estimated' }
}

/**
 * Brings images into the form that the client needs. Bytes get a link of ours where a link is wanted; a vendor's own
 * link goes on as it is, unless the operator keeps all results.
 */
async function deliver(
  { artifacts }: ImageParts,
  ask: ImageAskBase,
  answer: ImagesAnswer,
  way: Way,
): Promise<ImagesAnswer> {
  const needsLink = (image: MadeImage) => image.media.kind === 'bytes' && ask.delivery === 'url'
  const isKept = (image: MadeImage) => needsLink(image) || (artifacts.keepsAll && image.media.kind === 'url')
  if (!answer.images.some(isKept)) return answer
  const { passed: _, ...rest } = answer
  const images = await Promise.all(
    answer.images.map(async (image) =>
      isKept(image) ? { ...image, media: await keep(artifacts, image, way) } : image,
    ),
  )
  return { ...rest, images }
}

async function keep(artifacts: Artifacts, { media }: MadeImage, { parts, routed }: Way): Promise<MadeImage['media']> {
  const { principal } = routed
  const signal = abortSignalOf(routed.signal)
  const about = { accountId: principal.accountId, signal }
  if (media.kind === 'bytes') {
    const { mediaType, base64 } = media
    return { kind: 'url', url: (await artifacts.keep(Buffer.from(base64, 'base64'), { ...about, mediaType })).url }
  }
  const link = { transport: 'linked', url: media.url, bytesMax: imageBytesMax } as const
  const fetched = await fetchInTime(parts, routed, link, signal)
  const { url } = await artifacts.keep(fetched.body, { ...about, mediaType: fetched.mediaType })
  return { kind: 'url', url }
}
