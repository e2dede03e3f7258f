import { byPattern } from '../model.ts'

/** What a line of image models accepts, according to its vendor. */
export type Family = {
  /** Sold by tokens and always sent as bytes, or sold by the image and sent as a link or bytes. */
  readonly sold: 'tokens' | 'pieces'
  readonly promptCharactersMax: number
  readonly countMax: number
  /** The first is the default. */
  readonly sizes: readonly [string, ...string[]]
  /** Also takes any size whose sides are multiples of 16 up to 3840, with an aspect ratio of at most 3:1. */
  readonly isFreeSize: boolean
  readonly qualities: readonly [string, ...string[]]
  /** All parameters it knows, besides those of an edit. Absent: it ignores unknown parameters. */
  readonly fields?: readonly string[]
  /** How many images an edit takes. */
  readonly imagesMax: number
}

const always = ['model', 'prompt', 'n', 'size', 'user', 'safety_identifier']
const streamed = ['stream', 'partial_images', 'background', 'output_format', 'output_compression', 'moderation']

const gptImage: Family = {
  sold: 'tokens',
  promptCharactersMax: 32_000,
  countMax: 10,
  sizes: ['auto', '1024x1024', '1536x1024', '1024x1536'],
  isFreeSize: false,
  qualities: ['auto', 'low', 'medium', 'high'],
  fields: [...always, ...streamed, 'quality'],
  imagesMax: 16,
}
const dallE: Family = {
  sold: 'pieces',
  promptCharactersMax: 1_000,
  countMax: 10,
  sizes: ['1024x1024', '512x512', '256x256'],
  isFreeSize: false,
  qualities: ['standard'],
  fields: [...always, 'quality', 'response_format'],
  imagesMax: 1,
}

export const familyOf = byPattern<Family>(
  [
    [
      /gpt-image-2\.[56]/,
      { ...gptImage, isFreeSize: true, qualities: ['auto', 'low', 'medium', 'high', 'xhigh', 'max'] },
    ],
    [/gpt-image-2/, { ...gptImage, isFreeSize: true }],
    [/gpt-image|chatgpt-image/, gptImage],
    [
      /dall-e-3/,
      {
        ...dallE,
        promptCharactersMax: 4_000,
        countMax: 1,
        sizes: ['1024x1024', '1792x1024', '1024x1792'],
        qualities: ['standard', 'hd'],
        fields: [...always, 'quality', 'response_format', 'style'],
        imagesMax: 0,
      },
    ],
    [/dall-e-2/, dallE],
  ],
  openFamily(),
)

/** OpenAI-compatible vendors check little. */
function openFamily(): Family {
  const { fields: _, ...open } = dallE
  return {
    ...open,
    promptCharactersMax: 32_000,
    isFreeSize: true,
    qualities: ['auto', 'standard', 'hd'],
    imagesMax: 16,
  }
}
