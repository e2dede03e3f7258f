import type { chatRequest } from '../../wire/openai/chat-schema.ts'

/** What each field of a chat request is for. A field without a line here does not compile. */
export const chatFields = {
  model: 'A model id from `GET /v1/models`.',
  messages: 'The conversation so far, oldest first.',
  stream: 'If true, the answer is sent as server-sent events, chunk by chunk. Default false.',
  temperature: 'Sampling temperature. Default 1; reasoning models accept no other value.',
  top_p:
    'Nucleus sampling: consider only the most likely tokens that make up this share. Default 1. Use this or `temperature`.',
  max_tokens: 'The maximum number of output tokens. Without it the model decides.',
  max_completion_tokens:
    'The maximum number of output tokens, including reasoning. Newer models use it instead of `max_tokens`; if both are given, the smaller one applies.',
  tools: 'Tools the model may call. It answers with `tool_calls`; send the results as messages of role `tool`.',
  tool_choice: '`auto`, `none`, `required`, or the tool that must be called: its name, or an object. Needs `tools`.',
  parallel_tool_calls: 'Whether several tools may be called at once. Needs `tools`.',
  response_format: 'Plain text, any JSON, or JSON that follows a schema.',
  stop: 'Sequences at which to stop; they are not part of the answer.',
  n: 'The number of candidates. Default 1; all of them are billed.',
  seed: 'For reproducible answers, as far as the vendor supports them.',
  frequency_penalty: 'Above 0, tokens become less likely the more often they have occurred. Default 0.',
  presence_penalty: 'Above 0, tokens that have occurred at all become less likely. Default 0.',
  logit_bias: 'A bias by token id, from -100 to 100.',
  logprobs: 'Whether to return the log probability of each token.',
  top_logprobs: 'How many of the most likely tokens to return at each position. Needs `logprobs`.',
  reasoning_effort:
    'How much to reason. The values differ by model: an unsupported value is a 400 that lists them, and any value is a 400 on a model that does not reason.',
  verbosity: 'How long the answer should be.',
  modalities: 'The kinds of output, for models that produce more than text.',
  audio: 'Voice and format of spoken answers. Needs `audio` in `modalities`.',
  prediction: 'Text that most of the answer will repeat, to make it faster.',
  stream_options: '`include_usage` adds a last chunk with the usage. Needs `stream`.',
  store: 'Whether the vendor keeps the conversation. Default false.',
  metadata: 'Keys and values stored with the conversation by vendors that keep it; the vendor decides what is allowed.',
  user: 'A label of your own for the end user.',
  safety_identifier: "A label of your own for the end user, for the vendor's abuse detection.",
  prompt_cache_key: 'Requests with the same key are more likely to hit the same cache.',
  prompt_cache_retention: 'How long the vendor should keep the prompt cached.',
  service_tier: '`auto` or `default`; a tier without a price here is refused.',
} as const satisfies Record<keyof typeof chatRequest.shape, string>

/** The same for the fields of messages, of whichever role. */
export const messageFields: Readonly<Record<string, string>> = {
  content: 'Text, or a list of blocks.',
  name: 'A label for the author.',
  tool_calls: 'The tool calls, as they came in the answer.',
  tool_call_id: 'The `id` of the tool call that this message answers.',
  refusal: 'The refusal, as it came in the answer.',
  audio: 'An earlier audio answer, by its id.',
  function_call: 'The older form of `tool_calls`.',
}
