import type { responsesRequest } from '../../wire/responses/schema.ts'

/** What each field of a responses request is for. A field without a line here does not compile. */
export const responseFields = {
  model: 'A model id from `GET /v1/models`.',
  input: 'A text, or the items of the conversation so far, oldest first.',
  instructions: 'Instructions that take precedence over the input.',
  stream: 'If true, the answer is sent as server-sent events. Default false.',
  stream_options:
    "Needs `stream`. `include_obfuscation` pads the events of OpenAI's reasoning models; it has no effect on others. Default false.",
  max_output_tokens: 'The maximum number of output tokens, including reasoning. Without it the model decides.',
  temperature: 'Sampling temperature. Default 1; reasoning models accept no other value.',
  top_p:
    'Nucleus sampling: consider only the most likely tokens that make up this share. Default 1. Use this or `temperature`.',
  top_logprobs: 'How many of the most likely tokens to return at each position, where the vendor supports it.',
  tools:
    'Tools the model may call: functions, custom tools with plain-text input, namespaces of both, and `web_search`.',
  tool_choice: '`auto`, `none`, `required`, the tool that must be called, or the tools that may be called.',
  parallel_tool_calls: 'Whether several tools may be called at once. Default true.',
  max_tool_calls: 'The maximum number of web searches by the vendor.',
  text: 'The `format` of the answer (plain text, any JSON, or JSON that follows a schema), and how long it should be.',
  reasoning:
    'How much to reason, and whether to show it. An unsupported `effort` is a 400 that lists the supported values.',
  include:
    "`reasoning.encrypted_content`, `message.output_text.logprobs`. Other values are passed on to OpenAI's reasoning models, and have no effect elsewhere.",
  truncation:
    'A conversation that is too long is a 400. With `auto`, OpenAI may shorten it for its reasoning models; other models never do.',
  store: 'Accepted without effect: responses are not stored.',
  background: 'Must be false: responses are not stored, so they cannot be retrieved later.',
  metadata: 'Keys and values, repeated in the answer.',
  user: 'A label of your own for the end user.',
  safety_identifier: "A label of your own for the end user, for the vendor's abuse detection.",
  prompt_cache_key: 'Requests with the same key are more likely to hit the same cache.',
  prompt_cache_retention: 'How long OpenAI keeps the prompt cached, on its reasoning models; no effect on others.',
  service_tier: '`auto` or `default`; a tier without a price here is refused.',
} as const satisfies Record<keyof typeof responsesRequest.shape, string>
