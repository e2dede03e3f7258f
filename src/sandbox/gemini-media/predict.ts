import { type Fields, fieldsIn, itemsIn, ownIn, shown, textIn } from '../fields.ts'
import { drawImage, type ImageFormat, type Size, writeSize } from '../files/image.ts'
import { type GoogleError, invalid, jsonType, modelNotFound, writeJson } from '../gemini/errors.ts'
import { list, message, readMessage, struct } from '../gemini/proto.ts'
import { reportedUnits } from '../media/reported.ts'
import type { ServedAsk, Endpoint } from '../serve.ts'
import { hashText } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { dialectOn } from '../gemini/dialect.ts'

const predictRequest = message('PredictRequest', () => ({ instances: list(struct), parameters: struct }))

type ImagenAsk = ServedAsk & {
  readonly count: number
  readonly size: Size
  readonly format: ImageFormat
  readonly tellsReasons: boolean
  readonly seed: number
}

/** Imagen: images as bytes, sold by the image. A filtered image is missing from the answer. */
export function imagen(model: string): Endpoint<Fields, ImagenAsk, GoogleError> {
  return {
    dialect: dialectOn('predict'),
    capabilities: ['images'],
    open: ({ text }) => ({ model, body: readMessage(text, predictRequest) }),
    read(body, known) {
      if (!known.model.startsWith('imagen')) throw modelNotFound(model, 'predict')
      return { model: known, ...readParameters(fieldsIn(body.parameters), model), ...readPrompt(body) }
    },
    make(ask) {
      const { steering, size, format, count, seed } = ask
      const filtered = steering.number('fail-image')
      const indexes = Array.from({ length: count }, (_, index) => index)
      const predictions = indexes.flatMap((index): unknown[] => {
        if (index + 1 === filtered) return ask.tellsReasons ? [{ raiFilteredReason }] : []
        const image = drawImage({ ...size, format, seed: hashText(`${index}`, seed) })
        return [{ mimeType: `image/${format}`, bytesBase64Encoded: image.toString('base64') }]
      })
      const made = indexes.filter((index) => index + 1 !== filtered).length
      const units = reportedUnits(steering, 'images', { images: { count: made, size: writeSize(size) } })
      const text = writeJson(predictions.length > 0 ? { predictions } : {})
      return { units, headers: { 'content-type': jsonType }, body: { kind: 'whole', text } }
    },
  }
}

const raiFilteredReason =
  'Unable to show generated images. All images were filtered out because they violated policies. Support codes: 56562880'

function readPrompt({ instances }: Fields): Pick<ImagenAsk, 'steering' | 'seed'> {
  const [instance, ...others] = itemsIn(instances).map(fieldsIn)
  if (!instance || others.length > 0) throw invalid('Exactly one instance is required.')
  const prompt = textIn(instance.prompt)
  if (prompt === '') throw invalid('Text prompt is required and must not be empty.')
  return { steering: readSteering(prompt), seed: hashText(prompt) }
}

const sizes: Readonly<Record<string, Size>> = {
  '1:1': { width: 1024, height: 1024 },
  '3:4': { width: 896, height: 1280 },
  '4:3': { width: 1280, height: 896 },
  '9:16': { width: 768, height: 1408 },
  '16:9': { width: 1408, height: 768 },
}

const countMax = 4

function readParameters(parameters: Fields, model: string): Omit<ImagenAsk, 'model' | 'steering' | 'seed'> {
  const { sampleCount = 4, aspectRatio = '1:1', imageSize = '1K', personGeneration, outputOptions } = parameters
  const count = Number(sampleCount)
  if (!Number.isInteger(count) || count < 1 || count > countMax) {
    throw invalid(`sampleCount must be between 1 and ${countMax}, but got ${shown(sampleCount)}.`)
  }
  const size = ownIn(sizes, shown(aspectRatio))
  if (!size) throw invalid(`Invalid aspect ratio ${shown(aspectRatio)}. Use one of ${Object.keys(sizes).join(', ')}.`)
  if (imageSize !== '1K' && (imageSize !== '2K' || /fast/.test(model))) {
    throw invalid(`Image size ${shown(imageSize)} is not supported by this model.`)
  }
  if (!['dont_allow', 'allow_adult', 'allow_all'].includes(textIn(personGeneration ?? 'allow_adult'))) {
    throw invalid(`${shown(personGeneration)} for personGeneration is currently not supported.`)
  }
  const scale = imageSize === '2K' ? 2 : 1
  return {
    count,
    size: { width: size.width * scale, height: size.height * scale },
    format: fieldsIn(outputOptions).mimeType === 'image/jpeg' ? 'jpeg' : 'png',
    tellsReasons: parameters.includeRaiReason === true,
  }
}
