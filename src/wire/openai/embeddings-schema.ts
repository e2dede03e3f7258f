import { z } from 'zod'

const text = z.string().min(1)
const token = z.int().min(0)

/** The embeddings request of the common protocol. A list of numbers is one input, in the model's own tokens. */
export const embeddingsRequest = z.looseObject({
  model: z.string().min(1).meta({ description: 'A model id from `GET /v1/models`.' }),
  input: z
    .union([text, z.array(text).min(1), z.array(token).min(1), z.array(z.array(token).min(1)).min(1)])
    .meta({ description: 'One text or up to 2,048; also as token lists where the vendor accepts them.' }),
  encoding_format: z.enum(['float', 'base64']).nullish().meta({ description: 'Default `float`.' }),
  dimensions: z
    .int()
    .min(1)
    .nullish()
    .meta({ description: 'The length of the vectors; by default that of the model.' }),
  user: z.string().nullish().meta({ description: 'A label of your own for the end user.' }),
})

export const embeddingsResult = z.looseObject({
  object: z.literal('list'),
  model: z.string().meta({ description: 'The requested model id.' }),
  data: z
    .array(
      z.looseObject({
        object: z.literal('embedding'),
        index: z.int().min(0).meta({ description: 'The index of the input, from 0.' }),
        embedding: z
          .union([z.array(z.number()), z.string()])
          .meta({ description: 'A list of numbers; with `base64`, little-endian float32 in base64.' }),
      }),
    )
    .meta({ description: 'One per input, in order.' }),
  usage: z.looseObject({
    prompt_tokens: z.int().min(0).meta({ description: 'Tokens of all inputs.' }),
    total_tokens: z.int().min(0).meta({ description: 'The same.' }),
  }),
})
