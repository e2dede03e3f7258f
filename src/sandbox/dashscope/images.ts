import { type Fields, fieldsIn, isGiven, itemsIn, shown, textIn } from '../fields.ts'
import { readImageHeader } from '../files/image-header.ts'
import { parseSize, type Size, writeSize } from '../files/image.ts'
import { linkImage } from '../files/results.ts'
import { reportedUnits, usageUnlessHidden } from '../media/reported.ts'
import type { ServedAsk, Answer } from '../serve.ts'
import type { SandboxModel } from '../model.ts'
import type { Call } from '../protocol.ts'
import { hashText } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { CodedRefusal } from '../refusal.ts'
import { invalidParameter, requestIdFor } from './errors.ts'
import { alike, type ImageRules, imageRulesFor, roundSize } from './image-rules.ts'
import { type Native, nativeHeaders } from './native.ts'

/** Images to make, from a prompt or from images and a prompt. */
export type ImageAsk = ServedAsk & { readonly count: number; readonly size: Size; readonly seed: number }

export function makeImages({ steering, count, size, seed }: ImageAsk, call: Call): Answer {
  const failed = steering.number('fail-image')
  const indexes = Array.from({ length: count }, (_, index) => index).filter((index) => index + 1 !== failed)
  const content = indexes.map((index) => ({
    image: linkImage({ ...size, format: 'png', seed: hashText(`${index}`, seed) }, { call, steering }),
  }))
  // Only images that succeeded are billed.
  const units = reportedUnits(steering, 'images', { images: { count: indexes.length, size: writeSize(size) } })
  const answer = {
    output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content } }] },
    ...usageUnlessHidden(steering, { image_count: units.images?.count ?? 0, ...size }),
    request_id: requestIdFor(call.text),
  }
  return { units, headers: nativeHeaders(call), body: { kind: 'whole', text: JSON.stringify(answer) } }
}

export function readImages({ input, parameters }: Native, model: SandboxModel): ImageAsk {
  const rules = imageRulesFor(model.model)
  const { text, images } = readContent(input, rules)
  const { n = 1, seed } = parameters
  if (!Number.isInteger(n) || Number(n) < 1 || Number(n) > rules.countMax) {
    const most = rules.countMax === 1 ? 'must be 1' : `must be between 1 and ${rules.countMax}`
    throw invalidParameter(`num_images_per_prompt ${most}`)
  }
  if (isGiven(seed) && !(Number.isInteger(seed) && Number(seed) >= 0 && Number(seed) <= 2_147_483_647)) {
    throw invalidParameter('seed must be an integer between 0 and 2147483647')
  }
  if (rules.sizes.kind === 'none' && isGiven(parameters.prompt_extend)) {
    throw invalidParameter('prompt_extend is not supported by this model.')
  }
  const joined = images.join('\n')
  return {
    model,
    steering: readSteering(text),
    count: Number(n),
    size: roundSize(readSize(parameters.size, rules, images.at(-1))),
    seed: hashText(`${text}\n${isGiven(seed) ? shown(seed) : ''}\n${joined.length}${joined.slice(-64)}`),
  }
}

/** One user message with exactly one text, and as many images as the model takes. */
function readContent(input: Fields, { images: [least, most] }: ImageRules): { text: string; images: string[] } {
  const messages = itemsIn(input.messages).map(fieldsIn)
  const [message, ...others] = messages
  if (!message || others.length > 0) throw invalidParameter('input.messages must contain exactly one message.')
  if (message.role !== 'user') throw invalidParameter("The role of input.messages[0] must be 'user'.")
  const blocks = itemsIn(message.content).map(fieldsIn)
  const texts = blocks.flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
  const [text, ...more] = texts
  if (text === undefined || text === '' || more.length > 0) {
    throw invalidParameter('Exactly one text is required in input.messages[0].content.')
  }
  const images = blocks.flatMap(({ image }) => (isGiven(image) ? [textIn(image)] : []))
  if (images.length < least || images.length > most) {
    const range = most === 0 ? 'does not take images' : `takes ${least} to ${most} images`
    throw invalidParameter(`This model ${range}, but ${images.length} were given.`)
  }
  const odd = images.find((image) => !/^(https?|oss):\/\/|^data:image\/[\w.+-]+;base64,/.test(image))
  if (odd !== undefined) throw new CodedRefusal(400, 'InvalidURL', `The image URL is invalid: ${odd.slice(0, 80)}`)
  return { text, images }
}

function readSize(asked: unknown, { sizes }: ImageRules, lastImage: string | undefined): Size {
  if (!isGiven(asked)) return defaultSize(sizes, lastImage)
  const size = parseSize(textIn(asked), '*')
  const refuse = (why: string) => invalidParameter(`size ${shown(asked)} is invalid: ${why}`)
  if (!size) throw refuse('it must be written as width*height.')
  const { width, height } = size
  switch (sizes.kind) {
    case 'none':
      throw invalidParameter('size is not supported by this model.')
    case 'listed':
      if (!sizes.list.includes(textIn(asked))) throw refuse(`it must be one of ${sizes.list.join(', ')}.`)
      return size
    case 'pixels':
      if (width * height < sizes.least || width * height > sizes.most) {
        throw refuse(`the total pixels must be between ${sizes.least} and ${sizes.most}.`)
      }
      return size
    case 'sides':
      if (Math.min(width, height) < sizes.least || Math.max(width, height) > sizes.most) {
        throw refuse(`each side must be between ${sizes.least} and ${sizes.most}.`)
      }
      return size
  }
}

/** Without a given size, the last image's shape decides. An image behind a link is not fetched and counts as square. */
function defaultSize(sizes: ImageRules['sizes'], lastImage = ''): Size {
  const square = { width: 1024, height: 1024 }
  if (sizes.kind === 'listed') return parseSize(sizes.list[0], '*') ?? square
  if (sizes.kind === 'pixels' && lastImage === '') {
    const side = Math.sqrt(sizes.most)
    return { width: side, height: side }
  }
  const data = /^data:[^,]*,(.*)$/.exec(lastImage)?.[1] ?? ''
  return alike(readImageHeader(Buffer.from(data, 'base64')) ?? square, 1024)
}
