import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import {
  isCallForced,
  type Conversation,
  type ReplyFormat,
  type Tool,
  type ToolChoice,
} from '../../capabilities/conversation.ts'
import { refuseUnwrittenSearch } from '../chat-rules.ts'
import { formatInstruction } from '../format-instruction.ts'
import { invalid } from '../issues.ts'
import { resolveReference } from '../schema-reference.ts'
import { capField, type ChatTarget } from './pass-ask.ts'
import { canBeStrict, strictFor } from './strict-schema.ts'
import { writeMessages } from './write-messages.ts'
import { withReadablePatterns } from './readable-patterns.ts'
import { writeParameters } from './write-parameters.ts'
import { restsBesideTools, writeThinking } from './write-thinking.ts'

export type TranslationTarget = ChatTarget & {
  /** Which call ids the vendor takes: any up to a length, or exactly nine letters and digits. */
  readonly callIds: 'any' | 'nine'
  /** `first`: the vendor, or the chat templates of its models, refuse instructions in the middle of a conversation. */
  readonly instructions: 'anywhere' | 'first'
  /** Whether any message may follow the results of calls, or only the model's. */
  readonly afterToolResults: 'anybody' | 'model'
  /** Whether the vendor takes `verbosity` and `prompt_cache_key`; some refuse a request for an unknown field. */
  readonly takesHints: boolean
  /** Whether the vendor enforces a schema of the answer; one that does not still makes it a JSON object. */
  readonly takesSchema: boolean
  /** The model's own maximum. */
  readonly outputTokensMax: number
}

// The limits of the common protocol.
const stopsMax = 4
const userCharactersMax = 64

/** Writes a conversation of another protocol in the common one. */
export function writeAsk(ask: ChatAsk, conversation: Conversation, target: TranslationTarget): string {
  refuseUnwrittenSearch(ask, conversation)
  const { tools, toolChoice, parallelTools, format, user } = conversation
  const body: Record<string, Json | undefined> = {
    model: target.upstreamModel,
    messages: writeMessages(withFormatTold(conversation, target), target),
    ...writeCap(conversation, target),
    ...(ask.choices > 1 && { n: ask.choices }),
    ...writeSampling(conversation, target),
    ...(tools.length > 0 && { tools: tools.map((tool) => writeTool(ask, tool)) }),
    ...(tools.length > 0 && toolChoice !== undefined && { tool_choice: writeToolChoice(toolChoice) }),
    ...(tools.length > 0 && parallelTools !== undefined && { parallel_tool_calls: parallelTools }),
    ...(format !== undefined && { response_format: writeFormat(format, target) }),
    ...writeEffort(conversation, target),
    // The namespaced label is short, although some clients write a whole JSON text here.
    ...(user !== undefined && { user: target.namespaced(user).slice(0, userCharactersMax) }),
    ...(target.takesHints && writeHints(conversation, target)),
    ...(target.storesByDefault && { store: false }),
    ...(ask.stream && { stream: true }),
    ...(ask.stream && target.usageInStream === 'asked' && { stream_options: { include_usage: true } }),
  }
  for (const field of target.leftOut) delete body[field]
  return JSON.stringify(body)
}

/** A forced call or a reply format has precedence over thinking, where a vendor does not allow both. */
function writeEffort(conversation: Conversation, target: TranslationTarget): JsonObject {
  const { tools, toolChoice, format, thinking } = conversation
  const isForced = tools.length > 0 && isCallForced(toolChoice)
  if (tools.length > 0 && restsBesideTools(target)) return { reasoning_effort: 'none' }
  const isRefused =
    target.thinkingSwitch === 'enable_thinking'
      ? isForced || format !== undefined
      : isForced && target.pastReasoning === 'wanted'
  // Also where the client said nothing about thinking, because these models may think by default.
  if (isRefused) return writeThinking({ effort: 'none', isShown: false }, target)
  return thinking === undefined ? {} : writeThinking(thinking, target)
}

function writeHints({ verbosity, cacheKey }: Conversation, target: TranslationTarget): JsonObject {
  return {
    ...(verbosity !== undefined && { verbosity }),
    ...(cacheKey !== undefined && { prompt_cache_key: target.namespaced(cacheKey) }),
  }
}

/** Clients of the messages protocol ask for the most that any model makes; vendors refuse more than their model can. */
function writeCap({ outputTokensMax }: Conversation, target: TranslationTarget): JsonObject {
  if (outputTokensMax === undefined) return {}
  return { [capField(target)]: Math.min(outputTokensMax, target.outputTokensMax) }
}

// Moonshot's models have one temperature with thinking and another without, and refuse any other value; the same holds
// for the other sampling fields.
const samplesAlone = /^kimi-k(?:2\.[5-9]|[3-9])/

/** On models of the reasoning class these fields have no effect, and some are refused. */
function writeSampling(
  conversation: Conversation,
  { reasoning, pastReasoning, upstreamModel, seedField }: TranslationTarget,
): JsonObject {
  if (reasoning) return {}
  const { temperature, topP, stop, seed, presencePenalty, frequencyPenalty, logprobs } = conversation
  const isFixed = pastReasoning === 'wanted' && samplesAlone.test(upstreamModel)
  return {
    ...(temperature !== undefined && !isFixed && { temperature }),
    ...(topP !== undefined && !isFixed && { top_p: topP }),
    ...(stop.length > 0 && { stop: writeStop(stop) }),
    ...(seed !== undefined && { [seedField]: seed }),
    ...(presencePenalty !== undefined && !isFixed && { presence_penalty: presencePenalty }),
    ...(frequencyPenalty !== undefined && !isFixed && { frequency_penalty: frequencyPenalty }),
    ...(logprobs !== undefined && { logprobs: true, ...(logprobs > 0 && { top_logprobs: logprobs }) }),
  }
}

/** Too many are refused, because an answer would silently not stop at one that is left out. */
function writeStop(sequences: readonly string[]): readonly string[] {
  if (sequences.length <= stopsMax) return sequences
  throw invalid('stop_sequences', `this model takes at most ${stopsMax} stop sequences`)
}

function writeTool(ask: ChatAsk, tool: Tool): JsonObject {
  const { name, description } = tool
  const parameters = writeParameters(tool.schema)
  const isStrict = strictFor(ask, { ...tool, schema: parameters })
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      parameters,
      ...(isStrict !== undefined && { strict: isStrict }),
    },
  }
}

function writeToolChoice(choice: ToolChoice): Json {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } }
}

function writeFormat(format: ReplyFormat, { takesSchema }: TranslationTarget): JsonObject {
  if (format.kind === 'json' || !takesSchema) return { type: 'json_object' }
  return { type: 'json_schema', json_schema: writeSchema(format) }
}

/** Where the vendor takes no schema, the model is told of it. */
function withFormatTold(conversation: Conversation, { takesSchema }: TranslationTarget): Conversation {
  const { system, format } = conversation
  if (format?.kind !== 'schema' || takesSchema) return conversation
  return { ...conversation, system: [...system, { kind: 'text', text: formatInstruction(format) }] }
}

/** A client of another protocol relies on the schema being enforced, which OpenAI does only on request. */
export function writeSchema(format: Extract<ReplyFormat, { kind: 'schema' }>): JsonObject {
  const { name = 'reply', description, schema, isStrict = canBeStrict(schema) } = format
  return {
    name,
    ...(description !== undefined && { description }),
    schema: withReadablePatterns(withObjectOnTop(schema)),
    ...(isStrict && { strict: true }),
  }
}

/** A recursive schema may begin with a reference to its own definition, where OpenAI requires the object itself. */
function withObjectOnTop(schema: JsonObject): JsonObject {
  const { $ref: ref, ...others } = schema
  const found = typeof ref === 'string' && ref !== '#' ? resolveReference(schema, ref) : undefined
  return isObject(found) ? { ...found, ...others } : schema
}
