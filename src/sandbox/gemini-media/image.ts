import { type Fields, fieldsIn, ownIn, shown } from '../fields.ts'
import { drawImage, type Size } from '../files/image.ts'
import { invalid } from '../gemini/errors.ts'
import type { CountedPrompt } from '../gemini/prompt.ts'
import { generationOf } from '../gemini/thinking.ts'
import { hashText } from '../seeded.ts'

export type InlineData = { readonly mimeType: string; readonly data: string }

export type ImageWork = {
  readonly kind: 'image'
  readonly size: Size
  readonly seed: number
  readonly tokens: number
}

/** The sizes at 1K; larger ones are two and four times as wide. */
const sizes: Readonly<Record<string, readonly [width: number, height: number]>> = {
  '1:1': [1024, 1024],
  '2:3': [832, 1248],
  '3:2': [1248, 832],
  '3:4': [864, 1184],
  '4:3': [1184, 864],
  '4:5': [896, 1152],
  '5:4': [1152, 896],
  '9:16': [768, 1344],
  '16:9': [1344, 768],
  '21:9': [1536, 672],
}

const scales: Readonly<Record<string, number>> = { '1K': 1, '2K': 2, '4K': 4 }

/** The second generation has a single resolution with a single price. */
export function readImageWork(config: Fields, model: string, { prompt }: CountedPrompt): ImageWork {
  const { aspectRatio = '1:1', imageSize = '1K' } = fieldsIn(config.imageConfig)
  const size = ownIn(sizes, shown(aspectRatio))
  const scale = ownIn(scales, shown(imageSize))
  if (!size) throw invalid(`Invalid aspect ratio: ${shown(aspectRatio)}. Use one of ${Object.keys(sizes).join(', ')}.`)
  if (!scale) throw invalid(`Invalid image size: ${shown(imageSize)}. Use one of 1K, 2K, 4K.`)
  const isSecond = generationOf({ model }) < 3
  const times = isSecond ? 1 : scale
  const [width, height] = size
  return {
    kind: 'image',
    size: { width: width * times, height: height * times },
    seed: hashText('picture', prompt.hash),
    tokens: isSecond ? 1290 : times === 4 ? 2000 : 1120,
  }
}

/** An image arrives in one piece, even in a stream. */
export function drawImages({ size, seed }: ImageWork): readonly InlineData[] {
  return [{ mimeType: 'image/png', data: drawImage({ ...size, format: 'png', seed }).toString('base64') }]
}
