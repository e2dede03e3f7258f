import { z } from 'zod'

const about = (description: string) => ({ description })

const block = z.strictObject({
  text: z.string().min(1).optional().meta(about('What to make. A block has either this or `image`.')),
  image: z.string().min(1).optional().meta(about('A publicly reachable https URL of a reference image.')),
  /** Some clients name the type of a block, although its fields already show it. */
  type: z.enum(['text', 'image']).optional(),
})

const message = z.strictObject({
  role: z.literal('user'),
  content: z.array(block).min(1).meta(about('At least one text; 1 to 3 images for models that edit.')),
})

/** Width and height joined by `*`, as the specification lists them. */
export const nativeSizes = [
  '1024*1024',
  '1664*928',
  '1472*1140',
  '1328*1328',
  '1140*1472',
  '928*1664',
  '1280*720',
  '720*1280',
] as const

/**
 * The multimodal image form of the specification. It is strict where a field could change what is made or charged,
 * because the gateway can neither check nor price a field that it does not know.
 */
export const nativeImagesRequest = z.looseObject({
  model: z.string().min(1).meta(about('A model id from `GET /v1/models` with the capability `images`.')),
  input: z.strictObject({ messages: z.array(message).length(1).meta(about('Exactly one message, with role `user`.')) }),
  parameters: z
    .strictObject({
      size: z.enum(nativeSizes).nullish().meta(about('Width and height. Default `1024*1024`.')),
      n: z.literal(1).nullish().meta(about('One image per request.')),
      seed: z.int().nullish().meta(about('The same prompt and seed give a similar image, on models that take a seed.')),
      watermark: z.boolean().nullish().meta(about('Whether the vendor adds a watermark. Default false.')),
      negative_prompt: z.string().nullish().meta(about('What to avoid.')),
      prompt_extend: z.boolean().nullish().meta(about('Whether the vendor may enrich the prompt. Default true.')),
    })
    .nullish(),
})

export type NativeImagesRequest = z.infer<typeof nativeImagesRequest>

export const nativeImagesAnswer = z.looseObject({
  request_id: z.string(),
  output: z.looseObject({
    choices: z.array(
      z.looseObject({
        finish_reason: z.string(),
        message: z.looseObject({
          role: z.literal('assistant'),
          content: z.array(z.looseObject({ image: z.url().meta({ description: 'A link that works for 24 hours.' }) })),
        }),
      }),
    ),
  }),
  usage: z.looseObject({
    image_count: z.int().min(0),
    width: z.int().min(1).optional(),
    height: z.int().min(1).optional(),
  }),
})
