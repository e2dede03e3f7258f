import type { Json, JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import type { Conversation, ReplyFormat, Tool } from '../../capabilities/conversation.ts'
import { refuseUnwrittenSearch } from '../chat-rules.ts'
import { strictFor } from '../openai/strict-schema.ts'
import { writeSchema } from '../openai/write-ask.ts'
import { writeParameters } from '../openai/write-parameters.ts'
import { effortFor } from '../openai/write-thinking.ts'
import { writeInput } from './write-input.ts'

export type ResponsesTarget = {
  readonly upstreamModel: string
  readonly reasoning: boolean
  readonly efforts: readonly string[]
  /** The model's own maximum. */
  readonly outputTokensMax: number
  /** Whether the vendor refuses to show reasoning summaries to our account. */
  readonly hidesReasoning?: boolean
  /** Keeps the cache and user labels of different accounts distinct at the vendor. */
  namespaced(label: string): string
}

/** The longest label that the vendor takes. */
const labelCharactersMax = 64

/** Writes a conversation of another protocol in this one. The vendor is asked to store nothing and to pad nothing. */
export function writeAsk(ask: ChatAsk, conversation: Conversation, target: ResponsesTarget): string {
  refuseUnwrittenSearch(ask, conversation)
  const { tools, toolChoice, parallelTools, outputTokensMax, user, cacheKey } = conversation
  const body: Record<string, Json | undefined> = {
    model: target.upstreamModel,
    ...writeInput(conversation),
    ...(outputTokensMax !== undefined && { max_output_tokens: Math.min(outputTokensMax, target.outputTokensMax) }),
    ...(tools.length > 0 && { tools: tools.map((tool) => writeTool(ask, tool)) }),
    ...(tools.length > 0 && toolChoice !== undefined && { tool_choice: writeToolChoice(toolChoice) }),
    ...(tools.length > 0 && parallelTools !== undefined && { parallel_tool_calls: parallelTools }),
    ...writeText(conversation),
    ...(target.reasoning ? writeThinking(conversation, target) : writeSampling(conversation)),
    ...(user !== undefined && { safety_identifier: label(user, target) }),
    ...(cacheKey !== undefined && { prompt_cache_key: label(cacheKey, target) }),
    store: false,
    ...(ask.stream && { stream: true, stream_options: { include_obfuscation: false } }),
  }
  return JSON.stringify(body)
}

export function label(given: string, target: ResponsesTarget): string {
  return target.namespaced(given).slice(0, labelCharactersMax)
}

/** Unlike chat, this protocol enforces a tool's schema unless told not to. */
function writeTool(ask: ChatAsk, tool: Tool): JsonObject {
  const { name, description } = tool
  const parameters = writeParameters(tool.schema)
  return {
    type: 'function',
    name,
    ...(description !== undefined && { description }),
    parameters,
    strict: strictFor(ask, { ...tool, schema: parameters }) ?? false,
  }
}

function writeToolChoice(choice: NonNullable<Conversation['toolChoice']>): Json {
  return typeof choice === 'string' ? choice : { type: 'function', name: choice.name }
}

function writeText({ format, verbosity }: Conversation): JsonObject {
  if (format === undefined && verbosity === undefined) return {}
  return {
    text: {
      ...(format !== undefined && { format: writeFormat(format) }),
      ...(verbosity !== undefined && { verbosity }),
    },
  }
}

function writeFormat(format: ReplyFormat): JsonObject {
  return format.kind === 'json' ? { type: 'json_object' } : { type: 'json_schema', ...writeSchema(format) }
}

/**
 * Reasoning comes encrypted, for the client to send back. Its summary is asked for only where the client wants to read
 * it, because the vendor shows summaries to verified organizations only and refuses the request of others.
 */
function writeThinking(conversation: Conversation, { efforts, hidesReasoning = false }: ResponsesTarget): JsonObject {
  const { thinking, showsOwnThinking } = conversation
  const effort = thinking === undefined ? undefined : effortFor(thinking, efforts)
  const reasoning = {
    ...(effort !== undefined && { effort }),
    ...((thinking?.isShown ?? showsOwnThinking) === true &&
      !hidesReasoning &&
      effort !== 'none' && { summary: 'auto' }),
  }
  return {
    ...(Object.keys(reasoning).length > 0 && { reasoning }),
    include: ['reasoning.encrypted_content'],
  }
}

function writeSampling({ temperature, topP }: Conversation): JsonObject {
  return { ...(temperature !== undefined && { temperature }), ...(topP !== undefined && { top_p: topP }) }
}
