import { z } from 'zod'
import { functionFields, toolName } from '../openai/chat-schema.ts'

// The responses request of the common protocol. Objects are loose: unknown fields pass on to vendors of this protocol.
// An explicit null means that the field is absent. Items, parts and tools are told apart by `type`; a type that cannot
// be carried to every vendor is not listed, so it is refused by its name.

const input = {
  text: z.looseObject({ type: z.literal('input_text'), text: z.string() }),
  image: z.looseObject({
    type: z.literal('input_image'),
    image_url: z.string().min(1).nullish(),
    file_id: z.string().nullish(),
    detail: z.enum(['auto', 'low', 'high', 'original']).nullish(),
  }),
  file: z.looseObject({
    type: z.literal('input_file'),
    file_data: z.string().min(1).nullish(),
    file_id: z.string().nullish(),
    file_url: z.string().min(1).nullish(),
    filename: z.string().nullish(),
  }),
  audio: z.looseObject({
    type: z.literal('input_audio'),
    input_audio: z.looseObject({ data: z.string().min(1), format: z.string() }),
  }),
} as const

/** Which role may use which part is checked when the item is read. */
const messagePart = z.discriminatedUnion('type', [
  input.text,
  input.image,
  input.file,
  input.audio,
  z.looseObject({ type: z.literal('output_text'), text: z.string() }),
  z.looseObject({ type: z.literal('refusal'), refusal: z.string() }),
])

const toolOutput = z.union([z.string(), z.array(z.discriminatedUnion('type', [input.text, input.image, input.file]))])
const callId = z.string().min(1)
const called = { call_id: callId, name: z.string().min(1), namespace: z.string().nullish() }

/** A part of what one of Codex's agents tells another. Only what a model of OpenAI's wrote is really encrypted. */
const agentPart = z.discriminatedUnion('type', [
  input.text,
  z.looseObject({ type: z.literal('encrypted_content'), encrypted_content: z.string() }),
])

const functionTool = z.looseObject({ type: z.literal('function'), ...functionFields })

const customTool = z.looseObject({
  type: z.literal('custom'),
  name: toolName,
  description: z.string().nullish(),
  format: z
    .discriminatedUnion('type', [
      z.looseObject({ type: z.literal('text') }),
      z.looseObject({ type: z.literal('grammar'), syntax: z.string(), definition: z.string() }),
    ])
    .nullish(),
})

const namespaceTool = z.looseObject({
  type: z.literal('namespace'),
  name: toolName,
  description: z.string().nullish(),
  tools: z.array(z.discriminatedUnion('type', [functionTool, customTool])),
})

const searchTool = z.looseObject({
  type: z.enum(['web_search', 'web_search_2025_08_26', 'web_search_preview', 'web_search_preview_2025_03_11']),
  external_web_access: z.boolean().nullish(),
  filters: z.looseObject({}).nullish(),
  user_location: z.looseObject({}).nullish(),
  search_context_size: z.enum(['low', 'medium', 'high']).nullish(),
})

/** Lets a model find tools that it was not shown. The client does the searching, not the vendor. */
const toolSearch = z.looseObject({
  type: z.literal('tool_search'),
  execution: z.literal('client'),
  description: z.string().nullish(),
  parameters: z.looseObject({}).nullish(),
})

const tool = z.discriminatedUnion('type', [functionTool, customTool, namespaceTool, searchTool, toolSearch])

const item = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('message').nullish(),
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: z.union([z.string(), z.array(messagePart)]),
  }),
  z.looseObject({ type: z.literal('function_call'), ...called, arguments: z.string() }),
  z.looseObject({ type: z.literal('function_call_output'), call_id: callId, output: toolOutput }),
  z.looseObject({ type: z.literal('custom_tool_call'), ...called, input: z.string() }),
  z.looseObject({ type: z.literal('custom_tool_call_output'), call_id: callId, output: toolOutput }),
  z.looseObject({
    type: z.literal('reasoning'),
    summary: z.array(z.looseObject({ text: z.string() })).nullish(),
    content: z.array(z.looseObject({ text: z.string() })).nullish(),
    encrypted_content: z.string().nullish(),
  }),
  z.looseObject({
    type: z.literal('image_generation_call'),
    result: z.string().nullish(),
    output_format: z.string().nullish(),
  }),
  z.looseObject({ type: z.literal('agent_message'), content: z.union([z.string(), z.array(agentPart)]).nullish() }),
  z.looseObject({ type: z.literal('additional_tools'), tools: z.array(tool) }),
  z.looseObject({ type: z.literal('tool_search_call'), call_id: callId, arguments: z.looseObject({}) }),
  z.looseObject({ type: z.literal('tool_search_output'), call_id: callId, tools: z.array(tool) }),
  // A search that a vendor ran: what it found is in the text that follows.
  z.looseObject({ type: z.literal('web_search_call') }),
])

const named = { name: z.string(), namespace: z.string().nullish() }

const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('function'), ...named }),
    z.looseObject({ type: z.literal('custom'), ...named }),
    z.looseObject({
      type: z.literal('allowed_tools'),
      mode: z.enum(['auto', 'required']),
      tools: z.array(z.looseObject({ type: z.string(), name: z.string().nullish(), namespace: z.string().nullish() })),
    }),
  ]),
])

const format = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    name: toolName,
    description: z.string().nullish(),
    schema: z.looseObject({}),
    strict: z.boolean().nullish(),
  }),
])

/** What an answer may include beside its text. Content that is never produced here adds nothing, and is no error. */
const include = z.enum([
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
  'message.input_image.image_url',
  'web_search_call.results',
  'web_search_call.action.sources',
  'file_search_call.results',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
])

export const responsesRequest = z.looseObject({
  model: z.string().min(1),
  input: z.union([z.string(), z.array(item)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_obfuscation: z.boolean().nullish() }).nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  max_tool_calls: z.int().min(1).nullish(),
  text: z.looseObject({ format: format.nullish(), verbosity: z.enum(['low', 'medium', 'high']).nullish() }).nullish(),
  reasoning: z
    .looseObject({
      effort: z.string().nullish(),
      summary: z.enum(['auto', 'concise', 'detailed']).nullish(),
      generate_summary: z.enum(['auto', 'concise', 'detailed']).nullish(),
    })
    .nullish(),
  include: z.array(include).nullish(),
  truncation: z.enum(['auto', 'disabled']).nullish(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().max(128).nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: z.string().nullish(),
  service_tier: z.string().nullish(),
})

export type ResponsesRequest = z.infer<typeof responsesRequest>
export type Item = Exclude<ResponsesRequest['input'], string>[number]
export type WrittenTool = NonNullable<ResponsesRequest['tools']>[number]
