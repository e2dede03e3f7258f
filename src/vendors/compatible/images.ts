import { without, withoutNull, type JsonObject } from '../../base/json.ts'
import { countImages } from '../../capabilities/image-tokens.ts'
import type { EditsAsk, ImagesAnswer, ImagesAsk, ImageAskBase } from '../../capabilities/images.ts'
import { readAnswer } from '../../wire/openai/images-answer.ts'
import { namespacedLabels } from '../../wire/openai/pass-ask.ts'
import { promptWithAvoided } from '../../wire/image-facts.ts'
import { readSize } from '../../wire/image-sizes.ts'
import { textIn } from '../../wire/loose.ts'
import { jsonCallAt, type EndpointOf } from '../json-call.ts'
import { linkOrData, looksOf, measure, imageFromBase64, imageStep, withoutExcess } from '../images.ts'
import type { Adapter, Call, CallContext, Form, FormPart, Step } from '../vendor.ts'
import { statusInside } from './explain.ts'

/** `common`: only the common protocol's fields. `any`: its fields are unknown, so what the client wrote passes on. */
type Fields = 'common' | 'any'

/** Images of vendors that speak the common protocol, without the fields for which the vendor refuses a request. */
export function imagesAt(
  reach: EndpointOf,
  fields: Fields,
  leftOut: readonly string[] = [],
): Adapter<ImagesAsk, ImagesAnswer> {
  const refused = new Set(leftOut)
  const callWith = (body: JsonObject, context: CallContext): Call =>
    jsonCallAt(reach, '/images/generations', without(body, refused), context)
  return {
    start: (ask, context) => step(ask, callWith(writeAsk(ask, context, fields), context), ask.references.length),
    stream(ask, context) {
      if (!ask.limits.alwaysBytes) return undefined
      return callWith({ ...writeAsk(ask, context, fields), stream: true, partial_images: ask.partialImages }, context)
    },
  }
}

/** Edits are a multipart form. The client's file names and types are dropped: headers were read, and names are ours. */
export function editsAt(reach: EndpointOf): Adapter<EditsAsk, ImagesAnswer> {
  const callWith = (ask: EditsAsk, context: CallContext, stream: JsonObject): Call => {
    const { url, headers } = reach('/images/edits', context)
    return { url, headers, body: formOf(ask, { ...writeEdit(ask, context), ...stream }) }
  }
  return {
    start: (ask, context) => step(ask, callWith(ask, context, {}), ask.images.length),
    stream(ask, context) {
      if (!ask.limits.alwaysBytes) return undefined
      return callWith(ask, context, { stream: true, partial_images: ask.partialImages })
    },
  }
}

function step(ask: ImageAskBase, call: Call, references: number): Step<ImagesAnswer> {
  const read = (body: Uint8Array) => {
    const { passed, ...answer } = readAnswer(body, `image/${ask.outputFormat ?? 'png'}`)
    const kept = withoutExcess(ask, answer.images)
    const images = kept.map((image) =>
      image.media.kind === 'bytes'
        ? { ...image, ...imageFromBase64(image.media.base64, image.media.mediaType) }
        : image,
    )
    const size = readSize(textIn(answer.said?.['size'])) ?? measure(images, ask.size)
    const looks = looksOf(size, textIn(answer.said?.['quality']))
    const used = countImages(ask, { made: images.length, looks, tokens: answer.tokens, references })
    const isWhole = kept.length === answer.images.length
    return { answer: { ...answer, images, ...size, ...(passed !== undefined && isWhole && { passed }) }, used }
  }
  // Bytes were asked for. A link in their place is fetched for every client: it may work for an hour only, or lead into
  // the operator's network.
  return imageStep({ ...ask, delivery: 'bytes' }, call, read, statusInside)
}

const gatewayFields = ['stream', 'partial_images', 'response_format', 'quality', 'image']
const notEdited: ReadonlySet<string> = new Set([...gatewayFields, 'background'])
/** OpenAI answers an unknown field with a 400, and a client may not know which vendor's model it asked for. */
const otherVendorsFields = ['negative_prompt', 'seed', 'watermark', 'prompt_extend']
/** OpenAI's older models, which have a single output format, do not know these either. */
const newerModelsFields = ['output_compression', 'background', 'moderation']

/** The client's own body, except for values that the gateway sets; of the native form, only what this form has. */
function writeAsk(ask: ImagesAsk, context: CallContext, fields: Fields): JsonObject {
  const shared = settingsOf(ask, context)
  const prompt = promptWithAvoided(ask)
  if (ask.form === 'native') return { ...shared, prompt }
  const notPassed = fields === 'any' ? [...gatewayFields] : [...gatewayFields, ...otherVendorsFields]
  // A model with a single output format has no field to choose it.
  const isOneWay = ask.limits.formats?.length === 1
  if (isOneWay) notPassed.push('output_format')
  if (isOneWay && fields === 'common') notPassed.push(...newerModelsFields)
  // Only OpenAI's older models have styles, and clients that were written for those send one to every model.
  if (ask.limits.alwaysBytes && fields === 'common') notPassed.push('style')
  // Nulls are dropped, because OpenAI's older models do not know many of the fields that may be null.
  const written = withoutNull(without(ask.written, new Set(notPassed)))
  const image = ask.references.map(({ media }) => linkOrData(media))
  return {
    ...written,
    ...shared,
    ...(fields === 'common' && { prompt }),
    ...(image.length > 0 && { image: typeof ask.written['image'] === 'string' ? (image[0] ?? '') : image }),
  }
}

function writeEdit(ask: EditsAsk, context: CallContext): JsonObject {
  return {
    ...without(ask.written, notEdited),
    ...settingsOf(ask, context),
    ...(ask.background !== undefined && { background: ask.background }),
  }
}

function settingsOf(ask: ImageAskBase, context: CallContext): JsonObject {
  const { written, size, quality, limits, sold } = ask
  // Where the price depends on the size, it is always sent, so that the vendor's own default does not decide.
  const isAsked = written['prompt'] === undefined || typeof written['size'] === 'string'
  const saysSize = size !== undefined && (isAsked || sold === 'pieces')
  return {
    model: context.upstreamModel,
    ...namespacedLabels(written, context),
    ...(saysSize && { size }),
    ...(quality !== undefined && { quality }),
    // A link of these vendors works for an hour, so bytes are asked for: our own link works for the promised day.
    ...(!limits.alwaysBytes && { response_format: 'b64_json' }),
  }
}

function formOf({ images, mask }: EditsAsk, fields: JsonObject): Form {
  const texts = Object.entries(fields).flatMap(([field, value]): FormPart[] =>
    value === undefined ? [] : [{ field, value: typeof value === 'string' ? value : JSON.stringify(value) }],
  )
  const field = images.length === 1 ? 'image' : 'image[]'
  const files = images.map((file): FormPart => ({ field, value: file }))
  return [...texts, ...files, ...(mask === undefined ? [] : [{ field: 'mask', value: mask }])]
}
