import { z } from 'zod'

// These schemas only document answers on the reference pages. They check nothing: a vendor's answer passes as it came.

const usage = z.looseObject({
  input_tokens: z.int(),
  cache_creation_input_tokens: z.int().nullable(),
  cache_read_input_tokens: z.int().nullable(),
  output_tokens: z.int(),
})

const block = z.union([
  z.looseObject({ type: z.literal('text'), text: z.string() }),
  z.looseObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
  z.looseObject({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input: z.looseObject({}) }),
  z.looseObject({ type: z.string() }).describe('Blocks of hosted tools, as sent by the vendor.'),
])

export const message = z.looseObject({
  id: z.string(),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: z.string(),
  content: z.array(block),
  stop_reason: z
    .enum([
      'end_turn',
      'max_tokens',
      'stop_sequence',
      'tool_use',
      'pause_turn',
      'refusal',
      'model_context_window_exceeded',
    ])
    .nullable(),
  stop_sequence: z.string().nullable(),
  usage,
})

export const messageEvent = z.looseObject({
  type: z.enum([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
    'ping',
    'error',
  ]),
})

export const tokenCount = z.looseObject({ input_tokens: z.int() })

export const messageError = z.looseObject({
  type: z.literal('error'),
  error: z.looseObject({
    type: z.string().meta({ description: 'The kind of error, for programs.' }),
    message: z.string().meta({ description: 'What went wrong, for humans.' }),
  }),
  request_id: z
    .string()
    .meta({ description: 'The same as `x-request-id`, except in refusals passed on from a vendor.' }),
})
