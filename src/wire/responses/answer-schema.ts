import { z } from 'zod'

// These schemas document answers on the reference pages, and tests check answers against them.

const text = (description: string) => z.string().meta({ description })
const count = (description: string) => z.int().min(0).meta({ description })

const outputText = z.looseObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.looseObject({ type: z.string() })),
  logprobs: z.array(z.looseObject({})),
})

const item = z.union([
  z.looseObject({
    type: z.literal('message'),
    id: z.string(),
    role: z.literal('assistant'),
    status: z.string(),
    content: z.array(z.union([outputText, z.looseObject({ type: z.literal('refusal'), refusal: z.string() })])),
  }),
  z.looseObject({
    type: z.literal('function_call'),
    id: z.string(),
    call_id: text('Repeat it in the `function_call_output` with the result.'),
    name: z.string(),
    arguments: text('JSON as a string; it may be invalid.'),
    status: z.string(),
  }),
  z.looseObject({
    type: z.literal('reasoning'),
    id: z.string(),
    summary: z.array(z.looseObject({ type: z.literal('summary_text'), text: z.string() })),
    encrypted_content: text('Present if requested in `include`; send it back unchanged.').optional(),
  }),
  z.looseObject({ type: z.string() }).meta({ description: 'Calls of custom tools, and images made by a model.' }),
])

const usage = z.looseObject({
  input_tokens: count('Tokens of the request.'),
  input_tokens_details: z.looseObject({
    cached_tokens: count('The input tokens that were read from the cache, at its price.'),
    cache_write_tokens: count('The input tokens that were written to the cache, at its price.'),
  }),
  output_tokens: count('Tokens of the answer, including reasoning.'),
  output_tokens_details: z.looseObject({ reasoning_tokens: count('The output tokens that were used for reasoning.') }),
  total_tokens: count('Both together.'),
})

export const response = z.looseObject({
  id: text('The id of the response. Responses are not stored.'),
  object: z.literal('response'),
  created_at: count('Unix time in seconds.'),
  completed_at: count('Unix time in seconds; null if the answer is incomplete.').nullable(),
  status: z.enum(['in_progress', 'completed', 'incomplete', 'failed']),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
  incomplete_details: z.looseObject({ reason: text('`max_output_tokens` or `content_filter`.') }).nullable(),
  model: text('The requested model id.'),
  output: z.array(item),
  usage: usage.nullable(),
  store: z.literal(false),
})

export const responseEvent = z.looseObject({
  type: text('`response.created`, `response.output_text.delta`, `response.completed` and so on.'),
  sequence_number: count('The number of the event, from 0.'),
})
