import type { responsesRequest } from '../../wire/responses/schema.ts'

/** What each field of a responses request is for. A field without a line here does not compile. */
export const responseFields = {
  model: 'A model id from `GET /v1/models`.',
  input: 'What to answer: a text, or the items of the conversation so far, oldest first.',
  instructions: 'What the model is to keep to, before all else.',
  stream: 'True: the answer comes as server-sent events. Default false.',
  stream_options:
    "Needs `stream`. `include_obfuscation` pads the events of OpenAI's models that think; on others it has no effect. Default false.",
  max_output_tokens: 'The most output tokens, reasoning included. Without it the model decides.',
  temperature: 'How freely to choose words. Default 1. Models of the reasoning class take no other value.',
  top_p: 'Choose among the likeliest words that make up this share. Default 1. Use this or `temperature`.',
  top_logprobs: 'How many likely tokens to return at each place, at vendors that say.',
  tools: 'What the model may call: functions, tools that take plain text, namespaces of both, and `web_search`.',
  tool_choice: '`auto`, `none`, `required`, the tool that must be called, or those that may be.',
  parallel_tool_calls: 'Whether several tools may be called at once. Default true.',
  max_tool_calls: 'The most searches that the vendor may make.',
  text: 'The `format` of the answer (plain text, any JSON, or JSON that follows a schema), and how long it should be.',
  reasoning:
    'How long to think, and whether to show it. An unsupported `effort` is a 400 that lists those of the model.',
  include:
    "`reasoning.encrypted_content`, `message.output_text.logprobs`. The others go on to OpenAI's models that think; elsewhere they are taken and have nothing to show.",
  truncation:
    'What is too long is a 400 of the vendor. With `auto`, OpenAI may cut it for its models that think; others cut nothing, with `auto` too.',
  store: 'Taken, and has no effect: nothing is kept.',
  background: 'False. Nothing is kept that could be asked for later.',
  metadata: 'Keys and values, repeated in the answer.',
  user: 'A label of your own for the end user.',
  safety_identifier: "A label of your own for the end user, for the vendor's abuse detection.",
  prompt_cache_key: 'Requests with the same key are more likely to meet the same cache.',
  prompt_cache_retention:
    'How long OpenAI is to keep the prompt of a model that thinks cached; on others it has no effect.',
  service_tier: '`auto` or `default`; a tier without a price here is refused.',
} as const satisfies Record<keyof typeof responsesRequest.shape, string>
