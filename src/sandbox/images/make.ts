import type { Units } from '../bill.ts'
import { namedEventEncoder } from '../event-stream.ts'
import { drawImage, type ImageSpec, writeSize } from '../files/image.ts'
import { linkImage } from '../files/results.ts'
import { commonHeaders } from '../media/common.ts'
import { reportedUnits, usageUnlessHidden } from '../media/reported.ts'
import type { Answer } from '../serve.ts'
import type { Call } from '../protocol.ts'
import { hashText } from '../seeded.ts'
import type { ImageAsk } from './ask.ts'

/** Image tokens of a 1024-pixel square; other sizes cost in proportion to their pixels. */
const squareTokens: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160, xhigh: 8320, max: 16_640 }
const partialImageTokens = 100

/** The vendor's links to images are valid for an hour. */
const lifeSeconds = 3_600

/** `event` is the prefix of the stream's event names. */
export function makeImages(ask: ImageAsk, call: Call, event: 'image_generation' | 'image_edit'): Answer {
  const units = countUnits(ask)
  const created = Math.floor(Date.now() / 1000)
  if (ask.isStreaming) {
    return {
      units,
      headers: { ...commonHeaders(call, 'text/event-stream; charset=utf-8'), 'cache-control': 'no-cache' },
      body: {
        kind: 'pieces',
        texts: eventTexts(ask, units, created, event),
        encode: namedEventEncoder(ask.steering),
        error: () =>
          '{"type":"error","error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}',
      },
    }
  }
  const data = Array.from({ length: ask.count }, (_, index) => writeImage(ask, call, index))
  const answer =
    ask.family.sold === 'tokens'
      ? { created, ...settings(ask), data, ...usageUnlessHidden(ask.steering, writeUsage(units)) }
      : { created, data }
  return { units, headers: commonHeaders(call), body: { kind: 'whole', text: JSON.stringify(answer) } }
}

function countUnits({
  steering,
  family,
  count,
  size,
  quality,
  partialImages,
  textTokens,
  imageTokens,
}: ImageAsk): Units {
  if (family.sold === 'pieces') {
    return reportedUnits(steering, 'images', { images: { count, size: writeSize(size), quality } })
  }
  const tokens = Math.round(((squareTokens[quality] ?? 0) * size.width * size.height) / 2 ** 20)
  const imageOutput = count * (tokens + partialImages * partialImageTokens)
  return reportedUnits(steering, 'imageOutput', { input: textTokens, imageInput: imageTokens, imageOutput })
}

function writeUsage({ input, imageInput = 0, imageOutput = 0 }: Partial<Units> & Pick<Units, 'input'>): unknown {
  return {
    input_tokens: input + imageInput,
    input_tokens_details: { text_tokens: input, image_tokens: imageInput },
    output_tokens: imageOutput,
    output_tokens_details: { image_tokens: imageOutput, text_tokens: 0 },
    total_tokens: input + imageInput + imageOutput,
  }
}

function wish({ size, format, seed, background }: ImageAsk, index: string): ImageSpec {
  return { ...size, format, seed: hashText(index, seed), isTransparent: background === 'transparent' }
}

const bytesOf = (ask: ImageAsk, index: string): string => drawImage(wish(ask, index)).toString('base64')

function writeImage(ask: ImageAsk, call: Call, index: number): unknown {
  const revised = /dall-e-3/.test(ask.model.model) ? { revised_prompt: 'An image, as the sandbox sees it.' } : {}
  return ask.delivery === 'b64_json'
    ? { ...revised, b64_json: bytesOf(ask, `${index}`) }
    : { ...revised, url: linkImage(wish(ask, `${index}`), { call, steering: ask.steering, lifeSeconds }) }
}

function settings({ background, format, quality, size }: ImageAsk): Record<string, string> {
  return { background, output_format: format, quality, size: writeSize(size) }
}

/** Previews, then the image. The last image carries the usage of all, so that a sum over the events is correct. */
function* eventTexts(ask: ImageAsk, units: Units, created: number, event: string): Generator<string, void> {
  const about = { created_at: created, ...settings(ask) }
  for (let index = 0; index < ask.count; index += 1) {
    for (let partial = 0; partial < ask.partialImages; partial += 1) {
      const b64 = bytesOf(ask, `${index} ${partial}`)
      yield JSON.stringify({ type: `${event}.partial_image`, b64_json: b64, partial_image_index: partial, ...about })
    }
    const usage = usageUnlessHidden(ask.steering, writeUsage(index + 1 < ask.count ? { input: 0 } : units))
    yield JSON.stringify({ type: `${event}.completed`, b64_json: bytesOf(ask, `${index}`), ...about, ...usage })
  }
}
