import { z } from 'zod'

/** The speech request of the common protocol. Which voices and formats there are, the model decides. */
export const speechRequest = z.looseObject({
  model: z.string().min(1).meta({ description: 'A model id from `GET /v1/models`.' }),
  input: z.string().min(1).meta({ description: 'The text to say; languages may be mixed.' }),
  voice: z
    .union([z.string(), z.looseObject({ id: z.string() })])
    .nullish()
    .meta({ description: "Who says it; without it, the model's default voice." }),
  response_format: z
    .string()
    .nullish()
    .meta({ description: '`mp3` (default) or `wav`; on some models also `opus`, `aac`, `flac`, `pcm`.' }),
  instructions: z
    .string()
    .nullish()
    .meta({ description: 'How to say it: tone, pace, emotion. A 400 on models without them.' }),
  speed: z.number().nullish().meta({ description: 'No effect where the vendor has none.' }),
  stream_format: z
    .enum(['audio', 'sse'])
    .nullish()
    .meta({ description: '`sse`: the sound comes as events, the last one with the usage.' }),
})

/** One event of a stream that was asked for with `stream_format: sse`. */
export const speechEvent = z.union([
  z.looseObject({
    type: z.literal('speech.audio.delta'),
    audio: z.string().meta({ description: 'A piece of the sound, as base64.' }),
  }),
  z.looseObject({
    type: z.literal('speech.audio.done'),
    usage: z
      .looseObject({
        input_tokens: z.int().min(0),
        output_tokens: z.int().min(0),
        total_tokens: z.int().min(0),
      })
      .meta({ description: 'Zeros, and `characters`, for models that are sold by the character.' }),
  }),
])
