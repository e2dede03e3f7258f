import { GatewayError } from '../../base/errors.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { unixSeconds } from '../../base/moment.ts'
import type { ImagesAnswer, ImageTokens, MadeImage, ImageAskBase } from '../../capabilities/images.ts'
import { answerIn } from '../answer-body.ts'
import { countIn, objectIn, objectsIn, textIn } from '../loose.ts'
import { failureIn } from './errors.ts'

/**
 * Reads a vendor's answer in this protocol, whose own bytes pass on where they are as clients expect them. Throws where
 * it is none, whatever its status said.
 */
export function readAnswer(body: Uint8Array, mediaType: string): ImagesAnswer {
  const json = answerIn(body)
  const failure = failureIn(json)
  if (failure !== undefined) throw failure
  const { data, created: _, ...said } = json
  const members = objectsIn(data)
  const images = members.flatMap((member) => readImage(member, mediaType))
  if (images.length === 0) throw new GatewayError('upstream-failed', "The model's vendor sent no image.")
  const tokens = readTokens(json['usage'])
  const isPlain = !members.some(({ url, b64_json: base64 }) => [url, base64].some(isDataUrl))
  return { images, ...(tokens !== undefined && { tokens }), said, ...(isPlain && { passed: body }) }
}

const dataUrl = /^data:[^,]*;base64,/i

function isDataUrl(value: Json | undefined): boolean {
  return dataUrl.test(textIn(value))
}

function readImage(member: JsonObject, mediaType: string): MadeImage[] {
  const url = textIn(member['url'])
  const revisedPrompt = textIn(member['revised_prompt'])
  const about = revisedPrompt === '' ? {} : { revisedPrompt }
  // Some servers put bytes into a `data:` URL, in place of plain base64 or of a link.
  const base64 = (textIn(member['b64_json']) || (isDataUrl(url) ? url : '')).replace(dataUrl, '')
  if (base64 !== '') return [{ media: { kind: 'bytes', mediaType, base64 }, ...about }]
  return url === '' ? [] : [{ media: { kind: 'url', url }, ...about }]
}

/** Splits the vendor's overlapping counts; undefined where it does not count in tokens, or only a part of them. */
export function readTokens(usage: Json | undefined): ImageTokens | undefined {
  if (!isObject(usage) || typeof usage['input_tokens'] !== 'number' || typeof usage['output_tokens'] !== 'number') {
    return undefined
  }
  const input = objectIn(usage['input_tokens_details'])
  const output = objectIn(usage['output_tokens_details'])
  const all = countIn(usage['input_tokens'])
  const imageInput = Math.min(countIn(input['image_tokens']), all)
  const cachedInput = Math.min(countIn(input['cached_tokens']), all - imageInput)
  const text = Math.min(countIn(output['text_tokens']), countIn(usage['output_tokens']))
  return {
    input: all - imageInput - cachedInput,
    cachedInput,
    imageInput,
    output: text,
    imageOutput: countIn(usage['output_tokens']) - text,
  }
}

/** The answer in this protocol: the vendor's own bytes where there are any. */
export function writeAnswer(answer: ImagesAnswer, createdAt: number): Uint8Array {
  if (answer.passed !== undefined) return answer.passed
  const data = answer.images.map(({ media, revisedPrompt }) => ({
    ...(media.kind === 'url' && { url: media.url }),
    ...(media.kind === 'bytes' && { b64_json: media.base64 }),
    ...(revisedPrompt !== undefined && { revised_prompt: revisedPrompt }),
  }))
  const created = unixSeconds(createdAt)
  return Buffer.from(JSON.stringify({ created, data, usage: writeUsage(answer), ...answer.said }))
}

/** The tokens, which are 0 where images are sold by the piece, and how many images there are and how large. */
function writeUsage({ tokens, images, width, height }: ImagesAnswer) {
  const { input = 0, cachedInput = 0, imageInput = 0, output = 0, imageOutput = 0 } = tokens ?? {}
  const text = input + cachedInput
  return {
    input_tokens: text + imageInput,
    input_tokens_details: { text_tokens: text, image_tokens: imageInput },
    output_tokens: output + imageOutput,
    total_tokens: text + imageInput + output + imageOutput,
    image_count: images.length,
    ...(width !== undefined && { width }),
    ...(height !== undefined && { height }),
  }
}

/** The answer as events, for a stream from a vendor that has none: every image comes complete. */
export function writeEvents(ask: ImageAskBase, answer: ImagesAnswer, createdAt: number): Uint8Array {
  const type = `${eventPrefix(ask)}.completed`
  const { width, height, said = {} } = answer
  const looks = { background: said['background'], output_format: said['output_format'], quality: said['quality'] }
  const about = {
    created_at: unixSeconds(createdAt),
    ...looks,
    ...(width !== undefined && height !== undefined && { size: `${width}x${height}` }),
  }
  const last = answer.images.length - 1
  const events = answer.images.map(({ media }, index) => {
    const usage = writeUsage(index === last ? answer : { images: [] })
    const b64 = media.kind === 'bytes' ? media.base64 : ''
    return `event: ${type}\ndata: ${JSON.stringify({ type, b64_json: b64, ...about, usage })}\n\n`
  })
  return Buffer.from(events.join(''))
}

export function eventPrefix({ capability }: ImageAskBase): string {
  return capability === 'edits' ? 'image_edit' : 'image_generation'
}
