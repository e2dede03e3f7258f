import type { chatRequest } from '../../wire/openai/schema.ts'

/** What each field of a chat request is for. A field without a line here does not compile. */
export const chatFields = {
  model: 'A model id from `GET /v1/models`.',
  messages: 'The conversation so far, oldest first.',
  stream: 'True: the answer comes as server-sent events, chunk by chunk. Default false.',
  temperature: 'How freely to choose words. Default 1. Models of the reasoning class take no other value.',
  top_p: 'Choose among the likeliest words that make up this share. Default 1. Use this or `temperature`.',
  max_tokens: 'The most output tokens. Without it the model decides.',
  max_completion_tokens:
    'The most output tokens, reasoning included. Newer models use it instead of `max_tokens`; where both are given, the smaller counts.',
  tools: 'What the model may call. It answers with `tool_calls`; send the results as messages of role `tool`.',
  tool_choice: '`auto`, `none`, `required`, or the tool that must be called: its name, or an object. Needs `tools`.',
  parallel_tool_calls: 'Whether several tools may be called at once. Needs `tools`.',
  response_format: 'Plain text, any JSON, or JSON that follows a schema.',
  stop: 'Where to stop; the sequence itself is left out of the answer.',
  n: 'How many candidates. Default 1; all of them are billed.',
  seed: 'The same seed and request give the same answer, as far as the vendor can.',
  frequency_penalty: 'Above 0, words that came often come less. Default 0.',
  presence_penalty: 'Above 0, words that came at all come less. Default 0.',
  logit_bias: 'A bias by token id, from -100 to 100.',
  logprobs: 'Whether to return the likelihood of each token.',
  top_logprobs: 'How many likely tokens to return at each place. Needs `logprobs`.',
  reasoning_effort:
    'How long to think. The values differ by model; an unsupported one is a 400 that lists them, and one on a model that does not reason a 400 that says so.',
  verbosity: 'How long the answer should be.',
  modalities: 'What the answer consists of, for models that make more than text.',
  audio: 'Voice and format of spoken answers. Needs `audio` in `modalities`.',
  prediction: 'Text that the answer will mostly repeat, so that it comes faster.',
  stream_options: '`include_usage` adds a last chunk with the usage. Needs `stream`.',
  store: 'Whether the vendor keeps the conversation. Default false.',
  metadata: 'Keys and values to find the conversation by. What they may be is up to the vendor that keeps them.',
  user: 'A label of your own for the end user.',
  safety_identifier: "A label of your own for the end user, for the vendor's abuse detection.",
  prompt_cache_key: 'Requests with the same key are more likely to meet the same cache.',
  prompt_cache_retention: 'How long the vendor should keep the prompt cached.',
  service_tier: '`auto` or `default`; a tier without a price here is refused.',
} as const satisfies Record<keyof typeof chatRequest.shape, string>

/** The same for messages, whatever their role. */
export const messageFields: Readonly<Record<string, string>> = {
  content: 'Text, or a list of blocks.',
  name: 'A label for the author.',
  tool_calls: 'What the model called, as it came in its answer.',
  tool_call_id: 'The `id` of the tool call that this answers.',
  refusal: 'The refusal, as it came in the answer.',
  audio: 'A spoken answer from before, by its id.',
  function_call: 'The older form of `tool_calls`.',
}
