import type { JsonObject } from '../../base/json.ts'
import { countImages } from '../../capabilities/image-tokens.ts'
import type { ImagesAnswer, ImagesAsk } from '../../capabilities/images.ts'
import { answerIn, fieldsIn } from '../../wire/answer-body.ts'
import { readSize, takesSize, writeSize } from '../../wire/image-sizes.ts'
import { countIn, objectIn, objectsIn, textIn } from '../../wire/loose.ts'
import { bearer, jsonCall } from '../json-call.ts'
import { linkOrData, imageStep, resultsIn, withoutExcess, type ImagesOutcome } from '../images.ts'
import type { Adapter } from '../vendor.ts'
import { statusOf } from './explain.ts'

/** Alibaba's images, in its own protocol, after which the specification's native form was modelled. */
export const images: Adapter<ImagesAsk, ImagesAnswer> = {
  start(ask, context) {
    const url = `${context.baseUrl}/api/v1/services/aigc/multimodal-generation/generation`
    const call = jsonCall(url, writeAsk(ask, context.upstreamModel), context, bearer(context))
    return imageStep(ask, call, (body) => readAnswer(ask, body), statusIn)
  },
}

function writeAsk(ask: ImagesAsk, model: string): JsonObject {
  const { prompt, references, count, negativePrompt, extendsPrompt, watermark, seed } = ask
  // The one model that takes no size does not take `prompt_extend` either.
  const isPlain = !takesSize(ask.limits)
  const size = ask.size === undefined || isPlain ? undefined : readSize(ask.size)
  return {
    model,
    input: {
      messages: [
        { role: 'user', content: [...references.map(({ media }) => ({ image: linkOrData(media) })), { text: prompt }] },
      ],
    },
    parameters: {
      n: count,
      ...(size !== undefined && { size: writeSize(size, '*') }),
      ...(negativePrompt !== undefined && { negative_prompt: negativePrompt }),
      ...(extendsPrompt !== undefined && !isPlain && { prompt_extend: extendsPrompt }),
      ...(watermark !== undefined && { watermark }),
      ...(seed !== undefined && { seed }),
    },
  }
}

/** Some services of DashScope refuse with a 2xx status. */
function statusIn(body: Uint8Array): number {
  const code = textIn(fieldsIn(body)['code'])
  return code === '' ? 200 : statusOf(code)
}

function readAnswer(ask: ImagesAsk, body: Uint8Array): ImagesOutcome {
  const json = answerIn(body)
  const choices = resultsIn(objectIn(json['output'])['choices'])
  const content = choices.flatMap(({ message }) => objectsIn(objectIn(message)['content']))
  const links = content.map(({ image }) => textIn(image)).filter((link) => link !== '')
  const images = withoutExcess(
    ask,
    links.map((url) => ({ media: { kind: 'url', url } })),
  )
  const usage = objectIn(json['usage'])
  const told = usage['image_count']
  const [width, height] = [countIn(usage['width']), countIn(usage['height'])]
  return {
    answer: {
      images,
      ...(width > 0 && height > 0 && { width, height }),
    },
    used: countImages(ask, {
      made: images.length,
      ...(typeof told === 'number' && { billed: countIn(told) }),
      references: ask.references.length,
    }),
  }
}
