import { z } from 'zod'

// Answers of the common protocol, for the reference pages and the tests. Vendors' answers pass through as they came, so
// none is checked against these while serving. Objects are loose, because a vendor may send more fields.

const text = (description: string) => z.string().meta({ description })
const count = (description: string) => z.int().min(0).meta({ description })

const named = z.looseObject({ name: z.string(), arguments: text('JSON as a string; it may be invalid.') })

const toolCall = z.looseObject({
  id: text('Repeat it as `tool_call_id` in the message with the result.'),
  type: text('`function` or `custom`.'),
  function: named.optional(),
  custom: z.looseObject({ name: z.string(), input: z.string() }).optional(),
})

const message = z.looseObject({
  role: z.literal('assistant'),
  content: text('The answer; null if the model calls tools or refuses.').nullable(),
  refusal: text('Why the model refuses to answer.').nullish(),
  reasoning_content: text('The reasoning, from vendors that show it.').nullish(),
  tool_calls: z.array(toolCall).nullish(),
})

const finishReason = text('`stop`, `length`, `tool_calls` or `content_filter`.')

export const usage = z.looseObject({
  prompt_tokens: count('Tokens of the request.'),
  completion_tokens: count('Tokens of all candidates together, including reasoning.'),
  total_tokens: count('Both together.'),
  prompt_tokens_details: z
    .looseObject({ cached_tokens: count('The prompt tokens that were read from the cache, at its price.').nullish() })
    .nullish(),
  completion_tokens_details: z
    .looseObject({ reasoning_tokens: count('The completion tokens that were used for reasoning.').nullish() })
    .nullish(),
})

export const chatCompletion = z.looseObject({
  id: text('The completion.'),
  object: z.literal('chat.completion'),
  created: count('Unix time in seconds.'),
  model: text('The requested model id.'),
  choices: z
    .array(
      z.looseObject({
        index: count('The candidate, from 0.'),
        message,
        finish_reason: finishReason,
        logprobs: z.looseObject({}).nullish(),
      }),
    )
    .meta({ description: 'One per candidate (`n`).' }),
  usage: usage.optional(),
})

const toolCallDelta = z.looseObject({
  index: count('The index of the call this delta belongs to.'),
  id: text('In the first piece of a call.').optional(),
  type: z.string().optional(),
  function: z.looseObject({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
})

const delta = z.looseObject({
  role: text('In the first chunk.').optional(),
  content: text('The next piece of the answer.').nullish(),
  refusal: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(toolCallDelta).nullish(),
})

export const chatCompletionChunk = z.looseObject({
  id: text('The completion, the same in every chunk.'),
  object: z.literal('chat.completion.chunk'),
  created: count('Unix time in seconds.'),
  model: text('The requested model id.'),
  choices: z
    .array(
      z.looseObject({
        index: count('The candidate, from 0.'),
        delta,
        finish_reason: finishReason.nullish(),
        logprobs: z.looseObject({}).nullish(),
      }),
    )
    .meta({ description: 'Empty in the last chunk if `stream_options.include_usage` was requested.' }),
  usage: usage.nullish(),
})

export const model = z.looseObject({
  id: text('The id to use as `model`.'),
  object: z.literal('model'),
  created: count('Unix time in seconds of its release, if known.'),
  owned_by: text('The vendor whose model it is.'),
  capabilities: z.array(z.string()).meta({ description: 'What the model can do: `chat` and others.' }),
  shutdown_date: text('The day on which its vendor has announced to end it; absent if there is none.').optional(),
  prices: z.looseObject({}).meta({
    description:
      'Your prices, in dollars as decimal strings: `inputPerMillion` and others per million tokens, `perMillionCharacters`, ' +
      '`perImage`, `perSecond`, `perVideo` and `perMillionVideoTokens` by size, `perRequest`; `tiers` for long inputs.',
    examples: [{ inputPerMillion: '0.15', cachedInputPerMillion: '0.075', outputPerMillion: '0.6' }],
  }),
})

export const modelList = z.looseObject({ object: z.literal('list'), data: z.array(model) })

/** The gateway's own errors have all four fields, except a 402 on edits and speech. A vendor's passes as it came. */
export const errorBody = z.looseObject({
  error: z.looseObject({
    message: text('What went wrong, for humans.'),
    type: text('The kind of error, for programs.').nullish(),
    param: text('The field at fault, such as `messages[0].content`; null if there is none.').nullish(),
    code: z.union([z.string(), z.number()]).nullish().meta({
      description:
        'A more specific kind, for programs. In a refusal passed on from a vendor it may be a number or absent.',
    }),
  }),
})

/**
 * Errors on the images path: `error` in the common form, the other three fields in the native form, and all of them
 * before the form is known.
 */
export const imageErrorBody = z.looseObject({
  error: errorBody.shape.error.optional(),
  code: text('The kind of error, for programs.').optional(),
  message: text('What went wrong, for humans.').optional(),
  request_id: text('The same as `x-request-id`.').optional(),
})
