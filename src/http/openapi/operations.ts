import type { z } from 'zod'
import { chatCompletion, chatCompletionChunk, model, modelList } from '../../wire/openai/answer-schema.ts'
import { chatRequest } from '../../wire/openai/chat-schema.ts'
import { message, messageEvent, tokenCount } from '../../wire/anthropic/answer-schema.ts'
import { countRequest, messagesRequest } from '../../wire/anthropic/schema.ts'
import { imageOperations } from './image-operations.ts'
import { responsesOperations } from './responses-operations.ts'
import { videoOperations } from './video-operations.ts'
import { textMediaOperations } from './text-media-operations.ts'
import {
  balanceSamples,
  chatSamples,
  countSamples,
  listSamples,
  messageSamples,
  modelSamples,
  usageSamples,
  type Samples,
} from './samples.ts'
import { balance, usageQuery, usageReport } from './usage-schema.ts'

/**
 * What the contract says about each documented route. Used when the contract is written, not while serving: the route
 * table names an entry by its id and imports the type alone.
 */
export type OperationDocs = {
  readonly summary: string
  readonly description: string
  /** Which ids the path takes, where there are more than a list shows. */
  readonly id?: string
  /** The parameters after the `?`. */
  readonly query?: readonly { readonly name: string; readonly description: string; readonly schema: object }[]
  readonly request?: {
    /** JSON when absent. */
    readonly type?: 'multipart/form-data'
    readonly schema: z.ZodType
    readonly example: unknown
  }
  readonly answer: {
    readonly description: string
    readonly schema: z.ZodType
    /** The content types, where the answer is not JSON. */
    readonly types?: readonly string[]
    /** One event of the stream, where the answer may stream. */
    readonly event?: z.ZodType
    /** Whether the answer says what it cost. */
    readonly metered?: true
  }
  /** The 202 answer of an operation that only orders something. */
  readonly accepted?: { readonly description: string; readonly schema: z.ZodType }
  /** Whether the operation takes an Idempotency-Key. */
  readonly once?: true
  /** Statuses of errors that this operation can give, beside 405, 431, 500 and those of an Idempotency-Key. */
  readonly errors: readonly number[]
  readonly samples: Samples
}

const ask = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello!' }] }

const messageAsk = {
  model: 'claude-sonnet-5',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello!' }],
}
const { max_tokens: _, ...countAsk } = messageAsk

const inAnthropicsForm =
  "With an `anthropic-version` header, answer and errors have the shape of Anthropic's protocol, and `x-api-key` is accepted."

/** Anthropic's form has pages; the common form has all models in one answer, and ignores these. */
const messagesModelsQuery = [
  {
    name: 'limit',
    description: 'With `anthropic-version`: how many models a page has. Default 20.',
    schema: { type: 'integer', minimum: 1, maximum: 1000 },
  },
  {
    name: 'after_id',
    description: 'With `anthropic-version`: the page after this model, the `last_id` of the page before.',
    schema: { type: 'string' },
  },
  {
    name: 'before_id',
    description: 'With `anthropic-version`: the page before this model. Has no effect beside `after_id`.',
    schema: { type: 'string' },
  },
] as const

export const operations = {
  createChatCompletion: {
    summary: 'Create a chat completion',
    description: [
      'Answers a conversation, as a whole or as a stream.',
      'Fields that are not listed are passed on to vendors that speak this protocol. An explicit null means that a field is absent.',
      'For reasoning models `top_p`, `stop`, the penalties, `logit_bias`, `logprobs`, `top_logprobs`, `modalities`, ' +
        '`audio` and `prediction` are accepted but have no effect. Reasoning may use up a small `max_completion_tokens`: ' +
        'the answer is then empty with `finish_reason` `length`, and is billed.',
      'A stream ends with `data: [DONE]`. A failure before the first byte is an ordinary error response; a later failure ' +
        'ends the stream with an event that has an `error` object, and the output that was delivered is billed.',
    ].join('\n\n'),
    once: true,
    request: { schema: chatRequest, example: ask },
    answer: {
      description: 'The completion; with `stream`, a series of `chat.completion.chunk` events.',
      schema: chatCompletion,
      event: chatCompletionChunk,
      metered: true,
    },
    errors: [400, 401, 402, 404, 413, 415, 429, 502, 503, 504],
    samples: chatSamples(ask.model),
  },
  ...responsesOperations,
  createMessage: {
    summary: 'Create a message',
    description: [
      "Anthropic's own protocol: its SDKs and its command-line tool work when their base address and key point here. " +
        "Every chat model is available; other vendors' models are reached by translation.",
      'The key is sent as a bearer token or as `x-api-key`. Both current versions of the protocol are supported. Headers ' +
        'that begin with `anthropic-`, and fields and betas that are not listed, are passed on to Anthropic.',
    ].join('\n\n'),
    once: true,
    request: { schema: messagesRequest, example: messageAsk },
    answer: {
      description: 'The message; with `stream`, a series of events.',
      schema: message,
      event: messageEvent,
      metered: true,
    },
    errors: [400, 401, 402, 404, 413, 415, 429, 502, 503, 504],
    samples: messageSamples(messageAsk.model),
  },
  countMessageTokens: {
    summary: 'Count the tokens of a message',
    description: "Counted by the vendor for Anthropic's models, estimated for all others. Free.",
    once: true,
    request: { schema: countRequest, example: countAsk },
    answer: { description: 'The count.', schema: tokenCount },
    errors: [400, 401, 404, 413, 415, 429, 503],
    samples: countSamples(messageAsk.model),
  },
  ...textMediaOperations,
  ...imageOperations,
  ...videoOperations,
  listModels: {
    summary: 'List models',
    description:
      'The models that the calling key may use, with their prices. The list changes: read it before choosing a model. Ids are lower case, ' +
      'with `-` where a vendor writes `/`, `:` or `_`. ' +
      inAnthropicsForm,
    query: messagesModelsQuery,
    answer: { description: 'The models.', schema: modelList },
    errors: [400, 401, 429, 503],
    samples: listSamples,
  },
  retrieveModel: {
    summary: 'Retrieve a model',
    description: `A single model by its id. ${inAnthropicsForm}`,
    answer: { description: 'The model.', schema: model },
    errors: [401, 404, 429, 503],
    samples: modelSamples(ask.model),
  },
  getUsage: {
    summary: 'Read usage',
    description: [
      "The usage and cost of the calling key's account, as totals or request by request.",
      'A request is part of the totals as soon as it has ended. Totals cover whole hours in UTC: a period that begins or ' +
        'ends within an hour is widened to include it, and the answer gives the resulting period.',
    ].join('\n\n'),
    query: usageQuery,
    answer: { description: 'The totals or the requests.', schema: usageReport },
    errors: [400, 401, 429, 503],
    samples: usageSamples,
  },
  getBalance: {
    summary: 'Read the balance',
    description: "The balance of the calling key's account, and what its spending caps still allow.",
    answer: { description: 'The balance.', schema: balance },
    errors: [401, 429, 503],
    samples: balanceSamples,
  },
} as const satisfies Record<string, OperationDocs>

export type OperationId = keyof typeof operations
