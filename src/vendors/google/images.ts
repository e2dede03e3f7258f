import { readImageHead } from '../../base/image-head.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { whyNotGiven } from '../../capabilities/given-image.ts'
import { countImages } from '../../capabilities/image-tokens.ts'
import type { GivenImage, ImagesAnswer, ImagesAsk, ImageTokens } from '../../capabilities/images.ts'
import type { MediaBytes } from '../../capabilities/conversation.ts'
import { answerIn, fieldsIn } from '../../wire/answer-body.ts'
import { freshInput, readUsage } from '../../wire/gemini/read-usage.ts'
import { promptWithAvoided } from '../../wire/image-facts.ts'
import { readSize, shape, type Size } from '../../wire/image-sizes.ts'
import { invalid } from '../../wire/issues.ts'
import { objectIn, objectsIn, textIn } from '../../wire/loose.ts'
import {
  bytesOf,
  measure,
  imageBytesMax,
  imageFromBase64,
  imageStep,
  resultsIn,
  withoutExcess,
  type ImagesOutcome,
} from '../images.ts'
import type { Adapter, CallContext, VendorResponse, Step } from '../vendor.ts'
import { hiddenRefusalBytesMax } from '../verdicts.ts'
import { callTo } from './call.ts'
import { statusOf } from './explain.ts'

/** Google makes images in two ways: Imagen by a prediction, and the Gemini models as the answer to a chat. */
export const images: Adapter<ImagesAsk, ImagesAnswer> = {
  start(ask, context) {
    if (context.upstreamModel.startsWith('imagen')) {
      const call = callTo('predict', writePrediction(ask), context)
      return imageStep(ask, call, (body) => readPredictions(ask, answerIn(body)), statusIn)
    }
    return withBytes(ask.references, (inline) => {
      const call = callTo('generateContent', writeContent(ask, inline, context), context)
      return imageStep(ask, call, (body) => readContent(ask, answerIn(body), context), statusIn)
    })
  },
}

/** Google may refuse with a 2xx status. */
function statusIn(body: Uint8Array): number {
  const { error } = body.length <= hiddenRefusalBytesMax ? fieldsIn(body) : {}
  return isObject(error) ? statusOf(error) : 200
}

/** The vendor fetches no links, so images that the client linked to are fetched by the rules for untrusted URLs. */
function withBytes(
  references: readonly GivenImage[],
  go: (inline: readonly MediaBytes[]) => Step<ImagesAnswer>,
): Step<ImagesAnswer> {
  const links = references.flatMap(({ media, at }) => (media.kind === 'url' ? [{ url: media.url, at }] : []))
  const inline = (fetched: Iterator<MediaBytes>) =>
    references.flatMap(({ media }): MediaBytes[] => {
      if (media.kind === 'bytes') return [media]
      const next = fetched.next()
      return next.done === true ? [] : [next.value]
    })
  if (links.length === 0) return go(inline([].values()))
  return {
    kind: 'calls',
    calls: links.map(({ url, at }) => ({ transport: 'guarded', url, at, bytesMax: imageBytesMax })),
    next: (responses) => go(inline(responses.map((one, index) => readReference(one, links[index]?.at)).values())),
  }
}

function readReference(response: VendorResponse, at = ''): MediaBytes {
  const head = readImageHead(response.body)
  const why = head === undefined || head === 'broken' ? 'it is not a PNG, JPEG or WebP file' : whyNotGiven(head)
  if (why === undefined) return bytesOf(response)
  throw invalid(at, `the content of the URL cannot be used: ${why}`, 'invalid_image')
}

const imagenRatios = ['1:1', '3:4', '4:3', '9:16', '16:9']
const geminiRatios = [...imagenRatios, '2:3', '3:2', '4:5', '5:4', '21:9']

/** The vendor takes an aspect ratio in place of a size: the nearest of those that it has. */
function ratioOf(size: string | undefined, ratios: readonly string[]): string | undefined {
  const wished = size === undefined ? undefined : readSize(size)
  if (wished === undefined) return undefined
  const distance = (ratio: string) => {
    const [width = 1, height = 1] = ratio.split(':').map(Number)
    return Math.abs(Math.log(shape({ width, height }) / shape(wished)))
  }
  return ratios.toSorted((a, b) => distance(a) - distance(b))[0]
}

function writePrediction(ask: ImagesAsk): JsonObject {
  const aspectRatio = ratioOf(ask.size, imagenRatios)
  const format = ask.outputFormat
  return {
    instances: [{ prompt: promptWithAvoided(ask) }],
    parameters: {
      sampleCount: ask.count,
      includeRaiReason: true,
      ...(aspectRatio !== undefined && { aspectRatio }),
      ...((format === 'png' || format === 'jpeg') && { outputOptions: { mimeType: `image/${format}` } }),
    },
  }
}

function readPredictions(ask: ImagesAsk, json: JsonObject): ImagesOutcome {
  const predictions = objectsIn(json['predictions'])
  const made = predictions.flatMap(({ bytesBase64Encoded: base64, mimeType }) =>
    typeof base64 === 'string' && base64 !== '' ? [imageFromBase64(base64, textIn(mimeType))] : [],
  )
  const images = withoutExcess(ask, made)
  const reason = predictions.map(({ raiFilteredReason }) => textIn(raiFilteredReason)).find((text) => text !== '')
  return {
    answer: { images, ...measure(images, ask.size) },
    used: countImages(ask, { made: images.length, references: 0 }),
    ...(reason !== undefined && { reason }),
  }
}

/** A longer side above these asks for 2K or 4K in place of the usual 1K. */
const sides2K = 1536
const sides4K = 3072

function sizeFor(longerSide: number): '2K' | '4K' | undefined {
  if (longerSide > sides4K) return '4K'
  return longerSide > sides2K ? '2K' : undefined
}

function writeContent(ask: ImagesAsk, inline: readonly MediaBytes[], { upstreamModel }: CallContext): JsonObject {
  const aspectRatio = ratioOf(ask.size, geminiRatios)
  const wished = ask.size === undefined ? undefined : readSize(ask.size)
  const side = wished === undefined ? 0 : Math.max(wished.width, wished.height)
  // Models of the second generation make one size only.
  const imageSize = upstreamModel.startsWith('gemini-2') ? undefined : sizeFor(side)
  return {
    contents: [
      {
        role: 'user',
        parts: [
          ...inline.map(({ mediaType, base64 }) => ({ inlineData: { mimeType: mediaType, data: base64 } })),
          { text: promptWithAvoided(ask) },
        ],
      },
    ],
    generationConfig: {
      responseModalities: ['TEXT', 'IMAGE'],
      ...((aspectRatio !== undefined || imageSize !== undefined) && {
        imageConfig: {
          ...(aspectRatio !== undefined && { aspectRatio }),
          ...(imageSize !== undefined && { imageSize }),
        },
      }),
      ...(ask.seed !== undefined && { seed: ask.seed }),
    },
  }
}

/** Tokens of one image by the vendor's price list: of the second generation, and of later ones by size. */
const tokensOfOne = { second: 1_290, upTo2K: 1_120, above: 2_000 } as const
/** Between 2K, which is four million pixels at any aspect ratio, and 4K, which is four times that. */
const pixels2KMax = 8_000_000

function tokensEach({ width, height }: Partial<Size>, { upstreamModel }: CallContext): number | undefined {
  if (upstreamModel.startsWith('gemini-2')) return tokensOfOne.second
  if (width === undefined || height === undefined) return undefined
  return width * height > pixels2KMax ? tokensOfOne.above : tokensOfOne.upTo2K
}

function readContent(ask: ImagesAsk, json: JsonObject, context: CallContext): ImagesOutcome {
  // A prompt that was blocked has feedback and need not have candidates.
  const [candidate] = isObject(json['promptFeedback']) ? objectsIn(json['candidates']) : resultsIn(json['candidates'])
  // Thoughts are words and drafts that are not meant for the client.
  const parts = objectsIn(objectIn(candidate?.['content'])['parts']).filter(({ thought }) => thought !== true)
  const made = parts.flatMap(({ inlineData }) => {
    const { data, mimeType } = objectIn(inlineData)
    return typeof data === 'string' && data !== '' ? [imageFromBase64(data, textIn(mimeType))] : []
  })
  const images = withoutExcess(ask, made)
  const tokens = readTokens(json)
  const size = measure(images, ask.size)
  const block = textIn(objectIn(json['promptFeedback'])['blockReason']) || textIn(candidate?.['finishReason'])
  const said = parts.map(({ text }) => textIn(text)).join('')
  return {
    answer: { images, ...size, ...(tokens !== undefined && { tokens }) },
    used: countImages(ask, {
      made: images.length,
      tokensEach: tokensEach(size, context),
      tokens,
      references: ask.references.length,
    }),
    reason: said || (block === '' ? '' : `The model's vendor made no image: ${block}.`),
  }
}

/** Images in the prompt are counted apart, as clients are shown them; reasoning costs as much as text in the answer. */
function readTokens({ usageMetadata }: JsonObject): ImageTokens | undefined {
  const usage = readUsage(usageMetadata, 'IMAGE')
  if (usage === undefined) return undefined
  const { input = 0, cachedInput = 0, audioInput = 0, output = 0, audioOutput = 0, imageOutput = 0 } = usage
  const all = input + audioInput
  const imageInput = Math.min(freshInput(objectIn(usageMetadata), 'IMAGE'), all)
  return { input: all - imageInput, cachedInput, imageInput, output: output + audioOutput, imageOutput }
}
