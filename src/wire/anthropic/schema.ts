import { z } from 'zod'

// The messages request. Objects are loose, and blocks and tools of unknown types pass, because the vendor adds new ones
// with every release. An explicit null means that the field is absent. The order of turns and results is left to the
// vendor, whose error wording its command-line tool matches.

const cache = z.looseObject({ type: z.string(), ttl: z.string().nullish() }).nullish()

const textBlock = z.looseObject({ type: z.literal('text'), text: z.string(), cache_control: cache })

const base64Source = z.looseObject({ type: z.literal('base64'), media_type: z.string(), data: z.string() })
const urlSource = z.looseObject({ type: z.literal('url'), url: z.string().min(1) })
const fileSource = z.looseObject({ type: z.literal('file'), file_id: z.string().min(1) })

const imageSource = z.discriminatedUnion('type', [base64Source, urlSource, fileSource])
const documentSource = z.discriminatedUnion('type', [
  base64Source,
  z.looseObject({ type: z.literal('text'), data: z.string() }),
  z.looseObject({ type: z.literal('content'), content: z.union([z.string(), z.array(z.looseObject({}))]) }),
  urlSource,
  fileSource,
])

const imageBlock = z.looseObject({ type: z.literal('image'), source: imageSource, cache_control: cache })
const documentBlock = z.looseObject({
  type: z.literal('document'),
  source: documentSource,
  title: z.string().nullish(),
  context: z.string().nullish(),
  citations: z.looseObject({ enabled: z.boolean().nullish() }).nullish(),
  cache_control: cache,
})

/** Known blocks are checked; an unknown block only needs a type. */
function openUnion<const Known extends readonly [KnownBlock, ...KnownBlock[]]>(known: Known) {
  const types = new Set<string>(known.map((block) => block.shape.type.value))
  // Without `abort` a union takes this for the nearest branch, and its issue hides the relevant one.
  const isUnknown = z.string().refine((type) => !types.has(type), { error: 'not valid for its type', abort: true })
  const unknownBlock = z.looseObject({ type: isUnknown })
  return z.union([z.discriminatedUnion('type', known), unknownBlock])
}
type KnownBlock = z.ZodObject<{ type: z.ZodLiteral<string> }, z.core.$loose>

/** The client's own tools have a schema; the vendor's have a dated type and fields of their own. */
const tool = z.looseObject({
  type: z.string().nullish(),
  name: z.string().min(1).nullish(),
  description: z.string().nullish(),
  input_schema: z.looseObject({}).nullish(),
  strict: z.boolean().nullish(),
  max_uses: z.int().min(1).nullish(),
  cache_control: cache,
})

const resultBlock = openUnion([textBlock, imageBlock, documentBlock])

const block = openUnion([
  textBlock,
  imageBlock,
  documentBlock,
  z.looseObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string().nullish() }),
  z.looseObject({ type: z.literal('redacted_thinking'), data: z.string() }),
  z.looseObject({
    type: z.literal('tool_use'),
    id: z.string().min(1),
    name: z.string().min(1),
    input: z.looseObject({}),
    cache_control: cache,
  }),
  z.looseObject({
    type: z.literal('tool_result'),
    tool_use_id: z.string().min(1),
    content: z.union([z.string(), z.array(resultBlock)]).nullish(),
    is_error: z.boolean().nullish(),
    cache_control: cache,
  }),
  z.looseObject({
    type: z.literal('tool_addition'),
    tool: z.looseObject({ definition: tool.nullish() }).nullish(),
  }),
])

const message = z.looseObject({
  role: z.enum(['user', 'assistant', 'system']),
  content: z.union([z.string(), z.array(block)]),
})

const toolChoice = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('auto'), disable_parallel_tool_use: z.boolean().nullish() }),
  z.looseObject({ type: z.literal('any'), disable_parallel_tool_use: z.boolean().nullish() }),
  z.looseObject({ type: z.literal('tool'), name: z.string(), disable_parallel_tool_use: z.boolean().nullish() }),
  z.looseObject({ type: z.literal('none') }),
])

const jsonFormat = z.looseObject({ type: z.string(), schema: z.looseObject({}).nullish() })

/** The fields of a prompt, which are all that `count_tokens` takes. */
const prompt = {
  model: z.string().min(1),
  messages: z.array(message).min(1),
  system: z.union([z.string(), z.array(textBlock)]).nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  thinking: z
    .looseObject({ type: z.string(), budget_tokens: z.int().min(1_024).nullish(), display: z.string().nullish() })
    .nullish(),
  output_config: z.looseObject({ effort: z.string().nullish(), format: jsonFormat.nullish() }).nullish(),
  output_format: jsonFormat.nullish(),
  cache_control: cache,
  speed: z.string().nullish(),
}

export const countRequest = z.looseObject(prompt)

export const messagesRequest = z.looseObject({
  ...prompt,
  // With 0 the vendor makes no answer and only warms the cache.
  max_tokens: z.int().min(0),
  stream: z.boolean().nullish(),
  stop_sequences: z.array(z.string()).nullish(),
  metadata: z.looseObject({ user_id: z.string().nullish() }).nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  // The vendor's older models read -1 as none, and older clients send it by default; its newer models refuse it.
  top_p: z
    .number()
    .min(-1)
    .max(1)
    .refine((share) => share >= 0 || share === -1, 'must be from 0 to 1, or -1 for none')
    .nullish(),
  top_k: z.int().min(-1).nullish(),
  service_tier: z.string().nullish(),
  inference_geo: z.string().nullish(),
})
