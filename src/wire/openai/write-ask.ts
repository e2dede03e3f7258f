import { badRequest } from '../../base/errors.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import {
  isCallForced,
  type Conversation,
  type ReplyFormat,
  type Tool,
  type ToolChoice,
} from '../../capabilities/conversation.ts'
import { follow } from '../schema-reference.ts'
import type { ChatTarget } from './pass-ask.ts'
import { canBeStrict } from './strict-schema.ts'
import { writeMessages } from './write-messages.ts'
import { restsBesideTools, writeThinking } from './write-thinking.ts'

export type TranslationTarget = ChatTarget & {
  /** Whether it knows `user`. */
  readonly takesUser: boolean
  /** Which ids of calls it takes: any of a length, or nine letters and digits. */
  readonly callIds: 'any' | 'nine'
  /** Where it takes instructions. */
  readonly instructions: 'anywhere' | 'first'
  /** Who may speak right behind the results of calls. */
  readonly behindResults: 'anybody' | 'model'
  /** Whether it knows `verbosity` and `prompt_cache_key`; some vendors refuse a request for a field that they do not know. */
  readonly takesHints: boolean
  /** The model's own most. */
  readonly outputTokensMax: number
}

// The most that the common protocol takes.
const stopsMax = 4
const userCharactersMax = 64

/** What a client of another protocol means, in the common one. */
export function writeAsk(ask: ChatAsk, conversation: Conversation, target: TranslationTarget): string {
  const { tools, toolChoice, parallelTools, format, user } = conversation
  const body: Record<string, Json | undefined> = {
    model: target.upstreamModel,
    messages: writeMessages(conversation, target),
    ...writeCap(conversation, target),
    ...(ask.choices > 1 && { n: ask.choices }),
    ...writeSampling(conversation, target),
    ...(tools.length > 0 && { tools: tools.map(writeTool) }),
    ...(tools.length > 0 && toolChoice !== undefined && { tool_choice: writeToolChoice(toolChoice) }),
    ...(tools.length > 0 && parallelTools !== undefined && { parallel_tool_calls: parallelTools }),
    ...(format !== undefined && { response_format: writeFormat(format) }),
    ...writeEffort(conversation, target),
    // Made the account's own, which also makes it short: some clients write a whole JSON text here.
    ...(user !== undefined && target.takesUser && { user: target.namespaced(user).slice(0, userCharactersMax) }),
    ...(target.takesHints && writeHints(conversation, target)),
    ...(target.storesByDefault && { store: false }),
    ...(ask.stream && { stream: true }),
    ...(ask.stream && target.usageInStream === 'asked' && { stream_options: { include_usage: true } }),
  }
  return JSON.stringify(body)
}

/** What must be had, a call or a form, goes before thoughts, where a vendor does not give both. */
function writeEffort(conversation: Conversation, target: TranslationTarget): JsonObject {
  const { tools, toolChoice, format, thinking } = conversation
  const isForced = tools.length > 0 && isCallForced(toolChoice)
  if (tools.length > 0 && restsBesideTools(target)) return { reasoning_effort: 'none' }
  const isRefused =
    target.thinkingSwitch === 'enable_thinking'
      ? isForced || format !== undefined
      : isForced && target.thoughts === 'wanted'
  // Even where nothing was said of thinking: they may think unless they are told not to.
  if (isRefused) return writeThinking({ effort: 'none', isShown: false }, target)
  return thinking === undefined ? {} : writeThinking(thinking, target)
}

function writeHints({ verbosity, cacheKey }: Conversation, target: TranslationTarget): JsonObject {
  return {
    ...(verbosity !== undefined && { verbosity }),
    ...(cacheKey !== undefined && { prompt_cache_key: target.namespaced(cacheKey) }),
  }
}

/** Clients of the messages protocol ask for the most that any model makes; vendors refuse more than theirs can. */
function writeCap({ outputTokensMax }: Conversation, target: TranslationTarget): JsonObject {
  if (outputTokensMax === undefined) return {}
  const { reasoning, outputCap } = target
  const field = outputCap === 'either' ? (reasoning ? 'max_completion_tokens' : 'max_tokens') : outputCap
  return { [field]: Math.min(outputTokensMax, target.outputTokensMax) }
}

// Moonshot has one temperature for thinking and another without, and refuses what is neither; so with the like of it.
const samplesAlone = /^kimi-k(?:2\.[5-9]|[3-9])/

/** On models of the reasoning class these have no effect and some are refused. */
function writeSampling(
  conversation: Conversation,
  { reasoning, thoughts, upstreamModel }: TranslationTarget,
): JsonObject {
  if (reasoning) return {}
  const { temperature, topP, stop, seed, presencePenalty, frequencyPenalty, logprobs } = conversation
  const isFixed = thoughts === 'wanted' && samplesAlone.test(upstreamModel)
  return {
    ...(temperature !== undefined && !isFixed && { temperature }),
    ...(topP !== undefined && !isFixed && { top_p: topP }),
    ...(stop.length > 0 && { stop: writeStop(stop) }),
    ...(seed !== undefined && { seed }),
    ...(presencePenalty !== undefined && !isFixed && { presence_penalty: presencePenalty }),
    ...(frequencyPenalty !== undefined && !isFixed && { frequency_penalty: frequencyPenalty }),
    ...(logprobs !== undefined && { logprobs: true, ...(logprobs > 0 && { top_logprobs: logprobs }) }),
  }
}

/** One that is left out would not stop the answer, and nobody would know: too many are refused. */
function writeStop(sequences: readonly string[]): readonly string[] {
  if (sequences.length <= stopsMax) return sequences
  const field = 'stop_sequences'
  throw badRequest(`Invalid '${field}': this model takes at most ${stopsMax} stop sequences.`, field)
}

function writeTool({ name, description, schema, isStrict }: Tool): JsonObject {
  const { $schema: _, ...parameters } = schema
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

function writeFormat(format: ReplyFormat): JsonObject {
  return format.kind === 'json' ? { type: 'json_object' } : { type: 'json_schema', json_schema: writeSchema(format) }
}

/** A client of another protocol counts on the schema being kept to; at OpenAI that has to be asked for. */
export function writeSchema(format: Extract<ReplyFormat, { kind: 'schema' }>): JsonObject {
  const { name = 'reply', description, schema, isStrict = canBeStrict(schema) } = format
  return {
    name,
    ...(description !== undefined && { description }),
    schema: withObjectOnTop(schema),
    ...(isStrict && { strict: true }),
  }
}

/** A schema that contains itself may begin with a reference to its own definition, where OpenAI wants the object itself. */
function withObjectOnTop(schema: JsonObject): JsonObject {
  const { $ref: ref, ...others } = schema
  const found = typeof ref === 'string' && ref !== '#' ? follow(schema, ref) : undefined
  return isObject(found) ? { ...found, ...others } : schema
}
