import { isObject, type JsonObject } from '../../base/json.ts'
import { countImages } from '../../capabilities/image-tokens.ts'
import type { ImagesAnswer, ImagesAsk, MadeImage } from '../../capabilities/images.ts'
import { countIn, objectIn, objectsIn, textIn } from '../../wire/loose.ts'
import { answerIn, fieldsIn } from '../../wire/answer-body.ts'
import { promptWithAvoided } from '../../wire/image-facts.ts'
import { readSize } from '../../wire/image-sizes.ts'
import { bearer, jsonCall } from '../json-call.ts'
import {
  linkOrData,
  measure,
  imageFromBase64,
  imageStep,
  resultsIn,
  withoutExcess,
  type ImagesOutcome,
} from '../images.ts'
import type { Adapter } from '../vendor.ts'
import { statusOf } from './explain.ts'

/** Seedream: the path is the common protocol's, the body is ByteDance's own. */
export const images: Adapter<ImagesAsk, ImagesAnswer> = {
  start(ask, context) {
    const url = `${context.baseUrl}/images/generations`
    const call = jsonCall(url, writeAsk(ask, context.upstreamModel), context, bearer(context))
    return imageStep(ask, call, (body) => readAnswer(ask, body), statusIn)
  },
}

function writeAsk(ask: ImagesAsk, model: string): JsonObject {
  const { references, size, delivery, watermark = false, seed, outputFormat } = ask
  const [first, ...others] = references.map(({ media }) => linkOrData(media))
  return {
    model,
    prompt: promptWithAvoided(ask),
    response_format: delivery === 'bytes' ? 'b64_json' : 'url',
    // One image per call: in a sequence the model itself chooses how many to make, so that no hold could cover it.
    sequential_image_generation: 'disabled',
    // Older models put a watermark on every image unless they are told not to.
    watermark,
    ...(size !== undefined && { size }),
    ...(first !== undefined && { image: others.length === 0 ? first : [first, ...others] }),
    ...(seed !== undefined && /seedream-3/.test(model) && { seed }),
    ...(/seedream-5/.test(model) && /^(?:png|jpeg)$/.test(outputFormat ?? '') && { output_format: outputFormat }),
  }
}

/** Ark may refuse with a 2xx status, either the whole request or each member of `data`, of which there is one. */
function statusIn(body: Uint8Array): number {
  const { error, data } = fieldsIn(body)
  if (isObject(error)) return statusOf(error)
  const members = objectsIn(data)
  return members.length > 0 && members.every(isBroken) ? 500 : 200
}

function isBroken({ error }: JsonObject): boolean {
  return textIn(objectIn(error)['code']).startsWith('Internal')
}

function readAnswer(ask: ImagesAsk, body: Uint8Array): ImagesOutcome {
  const json = answerIn(body)
  const members = resultsIn(json['data'])
  const images = withoutExcess(ask, members.flatMap(readMember))
  // A failed member stands among the others and is not charged, so the vendor's own count is billed.
  const told = objectIn(json['usage'])['generated_images']
  const reason = members.map(({ error }) => textIn(objectIn(error)['message'])).find((text) => text !== '')
  const size = members.map((member) => readSize(textIn(member['size']))).find((found) => found !== undefined)
  return {
    answer: { images, ...(size ?? measure(images, ask.size)) },
    used: countImages(ask, {
      made: images.length,
      ...(typeof told === 'number' && { billed: countIn(told) }),
      references: ask.references.length,
    }),
    ...(reason !== undefined && { reason }),
  }
}

function readMember(member: JsonObject): MadeImage[] {
  const { url, b64_json: base64 } = member
  if (typeof base64 === 'string' && base64 !== '') return [imageFromBase64(base64, 'image/jpeg')]
  return typeof url === 'string' && url !== '' ? [{ media: { kind: 'url', url } }] : []
}
