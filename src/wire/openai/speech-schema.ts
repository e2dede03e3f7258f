import { z } from 'zod'

/** The speech request of the common protocol. Voices and formats depend on the model. */
export const speechRequest = z.looseObject({
  model: z.string().min(1).meta({ description: 'A model id from `GET /v1/models`.' }),
  input: z.string().min(1).meta({ description: 'The text to speak; languages may be mixed.' }),
  voice: z
    .union([z.string(), z.looseObject({ id: z.string() })])
    .nullish()
    .meta({ description: 'The voice; by default that of the model.' }),
  response_format: z
    .string()
    .nullish()
    .meta({ description: '`mp3` (default) or `wav`; on some models also `opus`, `aac`, `flac`, `pcm`.' }),
  instructions: z
    .string()
    .nullish()
    .meta({ description: 'How to speak: tone, pace, emotion. A 400 on models that take no instructions.' }),
  speed: z.number().nullish().meta({ description: 'No effect where the vendor does not support it.' }),
  stream_format: z
    .enum(['audio', 'sse'])
    .nullish()
    .meta({ description: '`sse`: the audio is sent as events; the last one has the usage.' }),
})

/** One event of a stream asked for by `stream_format: sse`. */
export const speechEvent = z.union([
  z.looseObject({
    type: z.literal('speech.audio.delta'),
    audio: z.string().meta({ description: 'A piece of the audio in base64.' }),
  }),
  z.looseObject({
    type: z.literal('speech.audio.done'),
    usage: z
      .looseObject({
        input_tokens: z.int().min(0),
        output_tokens: z.int().min(0),
        total_tokens: z.int().min(0),
      })
      .meta({ description: 'Zeros, and `characters`, for models priced per character.' }),
  }),
])
