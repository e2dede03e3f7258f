import { badRequest } from '../base/errors.ts'
import { isGiven, type JsonObject } from '../base/json.ts'
import type { IsOwnLink } from '../base/untrusted-url.ts'
import type { EditsAsk, ImagesAnswer, ImagesAsk, ImageAskBase } from '../capabilities/images.ts'
import type { ReceivedRequest } from '../capabilities/ask.ts'
import type { ModelTraits } from '../capabilities/limits.ts'
import { estimateInput } from './image-facts.ts'
import { writeSize } from './image-sizes.ts'
import * as native from './native/images.ts'
import * as edits from './openai/edits-ask.ts'
import { writeStreamError } from './openai/errors.ts'
import { writeAnswer, writeEvents } from './openai/images-answer.ts'
import * as common from './openai/images-ask.ts'
import { passStream } from './openai/images-stream.ts'

const json = 'application/json'

type Name = { readonly requestId: string; readonly createdAt: number }

/** The path serves two forms; a body with the fields of both is native. Undefined where it has neither field. */
export function formOf({ input, prompt }: JsonObject): ImagesAsk['form'] | undefined {
  if (isGiven(input)) return 'native'
  return isGiven(prompt) ? 'common' : undefined
}

const stream = {
  pass: passStream,
  write: (ask: ImageAskBase, answer: ImagesAnswer, { createdAt }: Name) =>
    writeEvents(ask, withLooks(ask, answer), createdAt),
  writeError: writeStreamError,
}

/** `POST /v1/images/generations`, in both its forms. */
export const imagesCodec = {
  readAsk(asked: ReceivedRequest, lookUp: (model: string) => ModelTraits, isOwn: IsOwnLink = () => false): ImagesAsk {
    switch (formOf(asked.body)) {
      case 'native':
        return native.readAsk(asked, lookUp, isOwn)
      case 'common':
        return common.readAsk(asked, lookUp, isOwn)
      case undefined:
        throw badRequest("Missing required parameter: 'prompt', or 'input'.", 'prompt', 'missing_required_parameter')
    }
  },
  estimateInput,
  writeAnswer(ask: ImagesAsk, answer: ImagesAnswer, { requestId, createdAt }: Name) {
    if (ask.form === 'common') return { body: writeAnswer(answer, createdAt), contentType: json }
    return { body: Buffer.from(JSON.stringify(native.writeAnswer(answer, requestId))), contentType: json }
  },
  stream,
}

/** `POST /v1/images/edits`. */
export const editsCodec = {
  readAsk: edits.readAsk,
  estimateInput,
  writeAnswer: (ask: EditsAsk, answer: ImagesAnswer, { createdAt }: Name) => ({
    body: writeAnswer(withLooks(ask, answer), createdAt),
    contentType: json,
  }),
  stream,
}

/**
 * Older models do not describe their images, but the answer to an edit and the events of a stream have the descriptive
 * fields on every model.
 */
function withLooks({ limits, size: asked, outputFormat = 'png' }: ImageAskBase, answer: ImagesAnswer): ImagesAnswer {
  if (limits.alwaysBytes) return answer
  const { passed: _, said, ...rest } = answer
  const { images, width, height } = rest
  const made = images[0]?.media
  const format = made?.kind === 'bytes' ? made.mediaType.slice('image/'.length) : outputFormat
  const size = asked ?? (width === undefined || height === undefined ? undefined : writeSize({ width, height }))
  const looks = {
    background: 'opaque',
    output_format: format,
    quality: 'medium', // what `standard` is an alias of: clients that check answers do not know `standard` there
    ...(size !== undefined && { size }),
  }
  return { ...rest, said: { ...looks, ...said } }
}
