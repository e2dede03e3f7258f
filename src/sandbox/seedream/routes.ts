import { checkNumber } from '../chat/check-fields.ts'
import { badRequest, errorBody, errorForStatus, type VendorError } from '../chat/errors.ts'
import { eventEncoder, type Frame, namedEventEncoder } from '../event-stream.ts'
import { type Fields, fieldsIn, isGiven, textIn } from '../fields.ts'
import { drawImage, type ImageFormat, type ImageSpec, type Size, writeSize } from '../files/image.ts'
import { linkImage } from '../files/results.ts'
import { commonHeaders, commonDialect, oneOf, openJson, requiredText } from '../media/common.ts'
import { reportedUnits, usageUnlessHidden } from '../media/reported.ts'
import { endpointAt, type ServedAsk, type Endpoint, type Answer } from '../serve.ts'
import type { Units } from '../bill.ts'
import type { SandboxModel } from '../model.ts'
import type { Call } from '../protocol.ts'
import { hashText } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { readSize } from './sizes.ts'

type SeedreamAsk = ServedAsk & {
  readonly count: number
  readonly size: Size
  readonly format: ImageFormat
  readonly delivery: 'url' | 'b64_json'
  readonly isStreaming: boolean
  readonly seed: number
}

/** `POST /images/generations` of ByteDance. The path is OpenAI's, the request is not. */
const seedream: Endpoint<Fields, SeedreamAsk, VendorError> = {
  dialect: commonDialect,
  capabilities: ['images', 'edits'],
  open: openJson,
  read: readAsk,
  make(ask, call) {
    const units = countUnits(ask)
    const about = { model: ask.model.model, created: Math.floor(Date.now() / 1000) }
    if (ask.isStreaming) return makeEvents(ask, call, units, about)
    const data = Array.from({ length: ask.count }, (_, index) => writeMember(ask, call, index))
    const text = JSON.stringify({ ...about, data, ...writeUsage(ask, units) })
    return { units, headers: commonHeaders(call), body: { kind: 'whole', text } }
  },
}

export const seedreamProtocol = endpointAt('/images/generations', seedream)

const promptCharactersMax = 4_000
const referencesMax = 14
const imagesMax = 15
/** How many images a sequence has if the request leaves it to the model. */
const storyImages = 3

function readAsk(body: Fields, model: SandboxModel): SeedreamAsk {
  const prompt = requiredText(body, 'prompt', promptCharactersMax)
  const references = readReferences(body.image)
  const isStory = oneOf(body, 'sequential_image_generation', ['disabled', 'auto']) === 'auto'
  const { max_images: most } = fieldsIn(body.sequential_image_generation_options)
  if (isGiven(most)) checkNumber('max_images', most, { whole: true, least: 1, most: imagesMax })
  const room = imagesMax - references.length
  const wanted = typeof most === 'number' ? most : storyImages
  const isNewest = /seedream-5/.test(model.model)
  return {
    model,
    steering: readSteering(prompt),
    count: isStory ? Math.min(wanted, room) : 1,
    size: readSize(body.size, model.model),
    format: isNewest ? oneOf(body, 'output_format', ['jpeg', 'png']) : 'jpeg',
    delivery: oneOf(body, 'response_format', ['url', 'b64_json']),
    isStreaming: body.stream === true,
    seed: hashText(`${prompt}\n${references.map((image) => image.slice(-64)).join()}`),
  }
}

function readReferences(image: unknown): readonly string[] {
  const images = isGiven(image) ? [image].flat().map(textIn) : []
  if (images.length > referencesMax) throw badRequest(`image: at most ${referencesMax} images are supported.`, 'image')
  if (images.some((source) => !/^https?:\/\/|^data:image\/[a-z]+;base64,/.test(source))) {
    throw badRequest('The parameter `image` specified in the request is not valid: invalid url.', 'image')
  }
  return images
}

const isFailed = ({ steering }: SeedreamAsk, index: number): boolean => steering.number('fail-image') === index + 1

/** Only images that were made are counted. */
function countUnits(ask: SeedreamAsk): Units {
  const count = Array.from({ length: ask.count }, (_, index) => index).filter((index) => !isFailed(ask, index)).length
  return reportedUnits(ask.steering, 'images', { images: { count, size: writeSize(ask.size) } })
}

function writeUsage({ steering, size }: SeedreamAsk, { images }: Units): { usage?: unknown } {
  const count = images?.count ?? 0
  const tokens = Math.floor((count * size.width * size.height) / 256)
  return usageUnlessHidden(steering, { generated_images: count, output_tokens: tokens, total_tokens: tokens })
}

const failure = {
  code: 'OutputImageSensitiveContentDetected',
  message: 'The request failed because the output image may contain sensitive information.',
}

/** A failed image is listed among the others, and the answer as a whole is still a success. */
function writeMember(ask: SeedreamAsk, call: Call, index: number): Record<string, unknown> {
  if (isFailed(ask, index)) return { error: failure }
  const wish: ImageSpec = { ...ask.size, format: ask.format, seed: hashText(`${index}`, ask.seed) }
  const size = writeSize(ask.size)
  return ask.delivery === 'url'
    ? { url: linkImage(wish, { call, steering: ask.steering }), size }
    : { b64_json: drawImage(wish).toString('base64'), size }
}

type About = { readonly model: string; readonly created: number }

const done = '[DONE]'

function makeEvents(ask: SeedreamAsk, call: Call, units: Units, about: About): Answer {
  const [named, plain] = [namedEventEncoder(ask.steering), eventEncoder(ask.steering)]
  return {
    units,
    headers: commonHeaders(call, 'text/event-stream; charset=utf-8'),
    body: {
      kind: 'pieces',
      texts: eventTexts(ask, call, units, about),
      encode: (frame: Frame) => (frame.text === done ? plain(frame) : named(frame)),
      error: () => JSON.stringify({ type: 'error', ...fieldsIn(errorBody('ark', errorForStatus(500), 'sandbox')) }),
    },
  }
}

function* eventTexts(ask: SeedreamAsk, call: Call, units: Units, about: About): Generator<string, void> {
  for (let index = 0; index < ask.count; index += 1) {
    const type = `image_generation.partial_${isFailed(ask, index) ? 'failed' : 'succeeded'}`
    yield JSON.stringify({ type, ...about, image_index: index, ...writeMember(ask, call, index) })
  }
  yield JSON.stringify({ type: 'image_generation.completed', ...about, ...writeUsage(ask, units) })
  yield done
}
