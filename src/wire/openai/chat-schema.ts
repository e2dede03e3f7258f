import { z } from 'zod'

// The chat request of the common protocol. Objects are loose: unknown fields pass on to vendors of this protocol. An
// explicit null means that the field is absent. The reference pages and the 400s are made from these schemas.

const text = z.string()

const textPart = z.looseObject({ type: z.literal('text'), text })

const imagePart = z.looseObject({
  type: z.literal('image_url'),
  image_url: z.looseObject({ url: z.string().min(1), detail: z.enum(['auto', 'low', 'high', 'original']).nullish() }),
})

const filePart = z.looseObject({ type: z.literal('file'), file: z.looseObject({}) })

const userPart = z.discriminatedUnion('type', [
  textPart,
  imagePart,
  z.looseObject({
    type: z.literal('input_audio'),
    input_audio: z.looseObject({ data: z.string().min(1), format: z.string() }),
  }),
  filePart,
  // Video parts as DashScope and Ark take them; the specification passes them on to models that support them.
  z.looseObject({ type: z.literal('video_url'), video_url: z.looseObject({ url: z.string().min(1) }) }),
  z.looseObject({ type: z.literal('video'), video: z.union([z.string(), z.array(z.string())]) }),
  z.looseObject({ type: z.literal('audio_url'), audio_url: z.looseObject({ url: z.string().min(1) }) }),
])

/** OpenAI takes only text in tool results. The specification allows images in every message, and others read them. */
const resultPart = z.discriminatedUnion('type', [textPart, imagePart, filePart])

const assistantPart = z.discriminatedUnion('type', [
  textPart,
  z.looseObject({ type: z.literal('refusal'), refusal: z.string() }),
  // What Mistral's models put among their text, and clients send back as it came.
  z.looseObject({ type: z.literal('thinking'), thinking: z.union([text, z.array(z.looseObject({}))]) }),
  z.looseObject({ type: z.literal('reference') }),
])

const toolCall = z.discriminatedUnion('type', [
  z.looseObject({
    id: z.string(),
    type: z.literal('function'),
    function: z.looseObject({ name: z.string(), arguments: z.string() }),
  }),
  z.looseObject({
    id: z.string(),
    type: z.literal('custom'),
    custom: z.looseObject({ name: z.string(), input: z.string() }),
  }),
])

const name = z.string().nullish()
const textContent = z.union([text, z.array(textPart).min(1)])

export const chatMessage = z.discriminatedUnion('role', [
  z.looseObject({ role: z.literal('developer'), content: textContent, name }),
  z.looseObject({ role: z.literal('system'), content: textContent, name }),
  z.looseObject({ role: z.literal('user'), content: z.union([text, z.array(userPart).min(1)]), name }),
  z.looseObject({
    role: z.literal('assistant'),
    content: z.union([text, z.array(assistantPart).min(1)]).nullish(),
    tool_calls: z.array(toolCall).nullish(),
    refusal: z.string().nullish(),
    audio: z.looseObject({ id: z.string() }).nullish(),
    function_call: z.looseObject({ name: z.string(), arguments: z.string() }).nullish(),
    name,
  }),
  z.looseObject({
    role: z.literal('tool'),
    content: z.union([text, z.array(resultPart).min(1)]),
    tool_call_id: z.string(),
    name,
  }),
  z.looseObject({ role: z.literal('function'), content: z.string().nullable(), name: z.string() }),
])

/** Names of tools and of answer schemas. The responses protocol has the same rule. */
export const toolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 of A-Z, a-z, 0-9, _ and -')

/** What a client says of a function. The responses protocol has the same fields, beside the type. */
export const functionFields = {
  name: toolName,
  description: z.string().nullish(),
  parameters: z.looseObject({}).nullish(),
  strict: z.boolean().nullish(),
}

const functionTool = z.looseObject({ type: z.literal('function'), function: z.looseObject(functionFields) })
const customTool = z.looseObject({
  type: z.literal('custom'),
  custom: z.looseObject({
    name: toolName,
    description: z.string().nullish(),
    format: z.looseObject({ type: z.string() }).nullish(),
  }),
})

/** A string is `none`, `auto`, `required` or the name of a tool, which is checked once the tools are read. */
const toolChoice = z.union([
  z.string(),
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
    z.looseObject({ type: z.literal('custom'), custom: z.looseObject({ name: z.string() }) }),
    z.looseObject({
      type: z.literal('allowed_tools'),
      allowed_tools: z.looseObject({ mode: z.enum(['auto', 'required']), tools: z.array(z.looseObject({})) }),
    }),
  ]),
])

const responseFormat = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    json_schema: z.looseObject({
      name: toolName,
      description: z.string().nullish(),
      schema: z.looseObject({}).nullish(),
      strict: z.boolean().nullish(),
    }),
  }),
])

const tokenCap = z.int().min(1).nullish()
const penalty = z.number().min(-2).max(2).nullish()

export const chatRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(chatMessage).min(1),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  max_tokens: tokenCap,
  max_completion_tokens: tokenCap,
  tools: z.array(z.discriminatedUnion('type', [functionTool, customTool])).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: responseFormat.nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
  n: z.int().min(1).nullish(),
  seed: z.int().nullish(),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  reasoning_effort: z.string().nullish(),
  verbosity: z.enum(['low', 'medium', 'high']).nullish(),
  modalities: z.array(z.string()).nullish(),
  audio: z.looseObject({ voice: z.union([z.string(), z.looseObject({})]), format: z.string() }).nullish(),
  prediction: z.looseObject({ type: z.literal('content') }).nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() })
    .nullish(),
  store: z.boolean().nullish(),
  // Any pairs; their number and length are judged by the vendor that stores them.
  metadata: z.looseObject({}).nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().max(128).nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: z.string().nullish(),
  service_tier: z.string().nullish(),
})

export type ChatRequest = z.infer<typeof chatRequest>
