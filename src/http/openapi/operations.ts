import type { z } from 'zod'
import { chatCompletion, chatCompletionChunk, model, modelList } from '../../wire/openai/answer-schema.ts'
import { chatRequest } from '../../wire/openai/schema.ts'
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
  /** Which `{id}` the path takes, where it is more than a list shows. */
  readonly id?: string
  /** What may stand behind the `?`. */
  readonly query?: readonly { readonly name: string; readonly description: string; readonly schema: object }[]
  readonly request?: {
    /** JSON, unless it is a form. */
    readonly type?: 'multipart/form-data'
    readonly schema: z.ZodType
    readonly example: unknown
  }
  readonly answer: {
    readonly description: string
    readonly schema: z.ZodType
    /** Of the content, where it is no JSON. */
    readonly types?: readonly string[]
    /** Where the answer may stream: one event of it. */
    readonly event?: z.ZodType
    /** Whether the answer says what it cost. */
    readonly metered?: true
  }
  /** What is only ordered by then: 202. */
  readonly accepted?: { readonly description: string; readonly schema: z.ZodType }
  /** Takes an Idempotency-Key. */
  readonly once?: true
  /** Statuses of errors that this operation can give, beside 405, 431, 500 and those of an Idempotency-Key. */
  readonly errors: readonly number[]
  readonly samples: Samples
}

const ask = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello!' }] }

const messageAsk = {
  model: 'claude-sonnet-4-5',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello!' }],
}
const { max_tokens: _, ...countAsk } = messageAsk

const inAnthropicsForm =
  "With a header `anthropic-version` the answer and errors are in the form of Anthropic's protocol, and `x-api-key` is taken."

export const operations = {
  createChatCompletion: {
    summary: 'Create a chat completion',
    description: [
      'Answers the last message of a conversation, in one piece or as a stream.',
      'Fields that are not listed go on to vendors that speak this protocol. An explicit null means that a field is absent.',
      'For models of the reasoning class `top_p`, `stop`, the penalties, `logit_bias`, `logprobs`, `top_logprobs`, ' +
        '`modalities`, `audio` and `prediction` are accepted and have no effect. A small `max_completion_tokens` may be ' +
        'used up by reasoning alone: the answer is then empty with `finish_reason` `length`, and is paid for.',
      'A stream ends with `data: [DONE]`. A failure before its first byte is an ordinary error; after it, an event with ' +
        'an `error` object is the last one, and what was delivered is billed.',
    ].join('\n\n'),
    once: true,
    request: { schema: chatRequest, example: ask },
    answer: {
      description: 'The answer; with `stream`, the same as events of `chat.completion.chunk`.',
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
      "Anthropic's own protocol, whole: its SDKs and its command-line tool work when their base address and key are " +
        'pointed here. Every chat model answers; models of other vendors by translation.',
      'The key is taken as a bearer or as `x-api-key`. Both live versions of the protocol are served, and headers that ' +
        'begin with `anthropic-` go on to that vendor, as do fields and betas that are not listed.',
    ].join('\n\n'),
    once: true,
    request: { schema: messagesRequest, example: messageAsk },
    answer: {
      description: 'The message; with `stream`, as events.',
      schema: message,
      event: messageEvent,
      metered: true,
    },
    errors: [400, 401, 402, 404, 413, 415, 429, 502, 503, 504],
    samples: messageSamples(messageAsk.model),
  },
  countMessageTokens: {
    summary: 'Count the tokens of a message',
    description: "By the vendor's own count where it is Anthropic's model, else estimated. Free.",
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
      'The models that the calling key may use, with their prices. Availability changes: read it before choosing one. Ids are in lower case, ' +
      'with `-` where a vendor writes `/`, `:` or `_`. ' +
      inAnthropicsForm,
    answer: { description: 'The models.', schema: modelList },
    errors: [401, 429, 503],
    samples: listSamples,
  },
  retrieveModel: {
    summary: 'Retrieve a model',
    description: `One model of the list, by its id. ${inAnthropicsForm}`,
    answer: { description: 'The model.', schema: model },
    errors: [401, 404, 429, 503],
    samples: modelSamples(ask.model),
  },
  getUsage: {
    summary: 'Read usage',
    description: [
      "What the calling key's account has used and what that cost, in sums or request by request.",
      'An answer is in the sums as soon as it has ended. Sums are of whole hours, in UTC: a period that begins or ends ' +
        'inside one is widened to it, and the answer says to what.',
    ].join('\n\n'),
    query: usageQuery,
    answer: { description: 'The sums or the requests.', schema: usageReport },
    errors: [400, 401, 429, 503],
    samples: usageSamples,
  },
  getBalance: {
    summary: 'Read the balance',
    description: "What the calling key's account has, and what spending caps leave of it.",
    answer: { description: 'The balance.', schema: balance },
    errors: [401, 429, 503],
    samples: balanceSamples,
  },
} as const satisfies Record<string, OperationDocs>

export type OperationId = keyof typeof operations
