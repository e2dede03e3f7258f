import { z } from 'zod'

// Images in the common protocol. The request is loose: unknown fields pass on to vendors of this protocol. The fields
// from `image` on belong to other vendors and work on the models that have them.

const qualities = ['auto', 'low', 'medium', 'high', 'xhigh', 'max', 'standard', 'hd'] as const
const backgrounds = ['auto', 'transparent', 'opaque'] as const
const outputFormats = ['png', 'jpeg', 'webp'] as const
const deliveries = ['url', 'b64_json'] as const

/** Standard clients ask for at most ten. */
const imagesMax = 10

/** A field's description on the reference pages. */
const about = (description: string) => ({ description })

export const imagesRequest = z.looseObject({
  model: z.string().min(1).meta(about('A model id from `GET /v1/models` with the capability `images`.')),
  prompt: z.string().min(1).meta(about('What to make.')),
  n: z
    .int()
    .min(1)
    .max(imagesMax)
    .nullish()
    .meta(about('The number of images. Default 1; the maximum depends on the model.')),
  size: z.string().nullish().meta(about('`WIDTHxHEIGHT`, or `auto`. The sizes differ by model; a 400 lists them.')),
  quality: z
    .enum(qualities)
    .nullish()
    .meta(about('On models that offer a choice. `standard` and `hd` are older names.')),
  response_format: z
    .enum(deliveries)
    .nullish()
    .meta(about('A link or base64. Default `url`, or `b64_json` on models that always return bytes.')),
  background: z.enum(backgrounds).nullish().meta(about('`transparent` needs an `output_format` of png or webp.')),
  output_format: z
    .enum(outputFormats)
    .nullish()
    .meta(about('The formats differ by model; a 400 lists them. Default png on models that offer a choice.')),
  output_compression: z.int().min(0).max(100).nullish().meta(about('For jpeg and webp, in percent.')),
  moderation: z.string().nullish().meta(about("How strict the vendor's filters are: `auto` or `low`.")),
  stream: z.boolean().nullish().meta(about('If true, the images are sent as server-sent events. Default false.')),
  partial_images: z.int().min(0).max(3).nullish().meta(about('In a stream: the number of previews per image.')),
  user: z.string().nullish().meta(about('A label of your own for the end user.')),
  safety_identifier: z.string().max(128).nullish().meta(about('The same, for abuse detection.')),
  image: z
    .union([z.string().min(1), z.array(z.string().min(1))])
    .nullish()
    .meta(about('Reference images as URLs or data URLs, on models that work from them.')),
  negative_prompt: z.string().nullish().meta(about('What to avoid.')),
  seed: z.int().nullish().meta(about('The same prompt and seed give a similar image, on models that take a seed.')),
  watermark: z.boolean().nullish().meta(about('Whether the vendor adds a watermark. Default false.')),
  prompt_extend: z.boolean().nullish().meta(about('Whether the vendor may enrich the prompt.')),
})

export type ImagesRequest = z.infer<typeof imagesRequest>

const wholeNumber = (min: number, max: number) => {
  const message = `expected a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^\d{1,9}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
}
const yesOrNo = z.enum(['true', 'false']).transform((value) => value === 'true')
const delivery = z.enum(deliveries).optional()

/** The text fields of an edit: in a form, numbers and booleans come as text. */
export const editsFields = z.looseObject({
  model: z.string().min(1),
  prompt: z.string().min(1),
  n: wholeNumber(1, imagesMax).optional(),
  size: z.string().optional(),
  quality: z.enum(['auto', 'low', 'medium', 'high', 'standard', 'hd']).optional(),
  // Empty means none: go-openai sends the field whether or not its user chose one.
  response_format: z
    .string()
    .transform((text) => (text === '' ? undefined : text))
    .pipe(delivery)
    .optional(),
  output_format: z.enum(outputFormats).optional(),
  output_compression: wholeNumber(0, 100).optional(),
  background: z.enum(backgrounds).optional(),
  input_fidelity: z.enum(['high', 'low']).optional(),
  stream: yesOrNo.optional(),
  partial_images: wholeNumber(0, 3).optional(),
  user: z.string().optional(),
})

export type EditsFields = z.infer<typeof editsFields>

const file = (description: string) => z.string().meta({ format: 'binary', description })

/** The same form as the contract shows it, with its files. */
export const editsForm = z.object({
  image: file(
    'PNG, JPEG or WebP. For several, on models that take several, repeat `image[]`, or send `image[0]`, `image[1]`.',
  ),
  mask: file('A PNG of the same size whose transparent area is edited. Some models only.').optional(),
  model: z.string().min(1).meta(about('A model id from `GET /v1/models` with the capability `edits`.')),
  prompt: z.string().min(1).meta(about('What to change.')),
  n: z.int().min(1).max(imagesMax).optional().meta(about('The number of images. Default 1.')),
  size: z.string().optional().meta(about('Default `auto`. See above for the sizes of each family.')),
  quality: editsFields.shape.quality.meta(about('Default `auto`. `standard` and `hd` mean medium and high.')),
  response_format: delivery.meta(about('Default `b64_json`; `url` on the older model only.')),
  output_format: editsFields.shape.output_format.meta(about('Default png. Not on the older model.')),
  output_compression: z.int().min(0).max(100).optional().meta(about('For jpeg and webp, in percent.')),
  background: editsFields.shape.background.meta(about('Default `auto`. `transparent` needs png or webp.')),
  input_fidelity: editsFields.shape.input_fidelity.meta(about('How closely to follow the given images.')),
  stream: z.boolean().optional().meta(about('If true, the images are sent as server-sent events. Default false.')),
  partial_images: z.int().min(0).max(3).optional().meta(about('In a stream: the number of previews per image.')),
  user: z.string().optional().meta(about('A label of your own for the end user.')),
})

const count = (description: string) => z.int().min(0).meta({ description })

const imagesUsage = z.looseObject({
  input_tokens: count('Tokens of the prompt and of the given images.'),
  input_tokens_details: z.looseObject({
    text_tokens: count('Of the prompt.'),
    image_tokens: count('Tokens of the given images.'),
  }),
  output_tokens: count('Tokens of the generated images; 0 for models priced per image.'),
  total_tokens: count('All together.'),
})

const settings = {
  background: z.string().optional(),
  output_format: z.string().optional(),
  quality: z.string().optional(),
  size: z.string().optional(),
}

export const imagesAnswer = z.looseObject({
  created: count('Unix time in seconds.'),
  data: z.array(
    z.looseObject({
      url: z.url().optional().meta({ description: 'A link that works for at most 24 hours.' }),
      b64_json: z.string().optional().meta({ description: 'The image in base64.' }),
      revised_prompt: z.string().optional(),
    }),
  ),
  ...settings,
  usage: imagesUsage.optional(),
})

export const imageEvent = z.looseObject({
  type: z.string().meta({
    description:
      '`image_generation.partial_image` or `image_generation.completed`; of an edit, `image_edit.partial_image` or `image_edit.completed`.',
  }),
  b64_json: z.string().meta({ description: 'The preview in base64.' }),
  partial_image_index: z.int().min(0).optional(),
  created_at: count('Unix time in seconds.'),
  ...settings,
  usage: imagesUsage.optional(),
})
