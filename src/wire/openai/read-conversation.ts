import { badRequest, excerpt, type GatewayError } from '../../base/errors.ts'
import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import {
  type AssistantBlock,
  type Conversation,
  type ReplyFormat,
  type TextBlock,
  type Tool,
  type ToolChoice,
  type Turn,
  type UserBlock,
} from '../../capabilities/conversation.ts'
import { cacheOf } from '../cache-hint.ts'
import { searchesMax } from '../chat-rules.ts'
import { invalid } from '../issues.ts'
import { objectIn, textIn } from '../loose.ts'
import { numberField } from '../number-field.ts'
import { arrangeTurns } from '../turns.ts'
import { outputCapOf } from './chat-ask.ts'
import { isLegacy, readFunctionChoice, readFunctions } from './legacy-functions.ts'
import { assistantBlocks, legacyCallId, resultBlock, textBlocks, userBlock } from './read-blocks.ts'
import { readThinking } from './read-thinking.ts'
import type { ChatRequest } from './chat-schema.ts'
import { noParameters } from './strict-schema.ts'
import { isToolWord } from './tool-choice.ts'

type Message = ChatRequest['messages'][number]

/** A common-protocol request as a neutral conversation, for vendors of other protocols: see docs/translation.md. */
export function readConversation(ask: ChatAsk): Conversation {
  // The request passed this schema when it was read; numbers that kept their own text become doubles below.
  const request = ask.native as unknown as ChatRequest
  const { system, turns } = readMessages(request.messages)
  const outputTokensMax = outputCapOf(request)
  const stop = typeof request.stop === 'string' ? [request.stop] : (request.stop ?? [])
  const legacy = isLegacy(ask)
  const tools = legacy ? readFunctions(ask.native) : readTools(request)
  const toolChoice = legacy ? readFunctionChoice(ask.native['function_call']) : readToolChoice(request)
  checkForced(toolChoice, tools, legacy ? 'function_call.name' : 'tool_choice')
  const format = readFormat(request)
  const thinking = readThinking(ask)
  const user = request.safety_identifier ?? request.user
  const { verbosity, prompt_cache_key: cacheKey } = request
  return {
    system,
    turns,
    tools,
    hostedTools: ask.searchesMax > 0 ? [{ kind: 'web-search', usesMax: searchesMax }] : [],
    stop,
    ...(toolChoice !== undefined && { toolChoice }),
    ...(legacy && { parallelTools: false }),
    ...(isGiven(request.parallel_tool_calls) && { parallelTools: request.parallel_tool_calls }),
    ...(isGiven(outputTokensMax) && { outputTokensMax }),
    ...numberField('temperature', request.temperature),
    ...numberField('topP', request.top_p),
    ...numberField('topK', ask.native['top_k']),
    ...numberField('seed', request.seed),
    ...numberField('presencePenalty', request.presence_penalty),
    ...numberField('frequencyPenalty', request.frequency_penalty),
    ...(request.logprobs === true && { logprobs: request.top_logprobs ?? 0 }),
    ...(format !== undefined && { format }),
    ...(thinking !== undefined && { thinking }),
    ...(isGiven(verbosity) && { verbosity }),
    ...(isGiven(user) && { user }),
    ...(isGiven(cacheKey) && { cacheKey }),
  }
}

/** Instructions at the beginning become the system prompt; those in the middle keep their place. */
function readMessages(messages: readonly Message[]): Pick<Conversation, 'system' | 'turns'> {
  const system: TextBlock[] = []
  const said: Turn[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role === 'system' || message.role === 'developer') {
      const blocks = hinted(textBlocks(message.content), message)
      if (said.length === 0) system.push(...blocks)
      else said.push({ role: 'system', blocks })
    } else if (message.role === 'assistant') {
      said.push({ role: 'assistant', blocks: hinted(assistantBlocks(message, index), message) })
    } else {
      said.push({ role: 'user', blocks: hinted(userTurn(message, index), message) })
    }
  }
  return { system, turns: arrangeTurns(said) }
}

function userTurn(message: Exclude<Message, { role: 'system' | 'developer' | 'assistant' }>, at: number): UserBlock[] {
  if (message.role === 'user') {
    if (typeof message.content === 'string') return textBlocks(message.content)
    return message.content.map((part, index) => userBlock(part, `messages[${at}].content[${index}]`))
  }
  const callId = message.role === 'tool' ? message.tool_call_id : legacyCallId(message.name)
  const { content } = message
  const blocks = Array.isArray(content)
    ? content.map((part, index) => resultBlock(part, `messages[${at}].content[${index}]`))
    : textBlocks(content ?? '')
  return [
    {
      kind: 'tool-result',
      callId,
      blocks: blocks.filter((block) => block.kind !== 'text' || block.text !== ''),
      isError: false,
      at: `messages[${at}]`,
    },
  ]
}

const hintCarriers: ReadonlySet<string> = new Set(['text', 'image', 'document', 'tool-call', 'tool-result'])

/** A cache hint on a message applies to its last block: clients write it there where the content is a single text. */
function hinted<Block extends UserBlock | AssistantBlock>(blocks: readonly Block[], message: Message): Block[] {
  const { cache } = cacheOf(message)
  const last = cache === undefined ? -1 : blocks.findLastIndex(({ kind }) => hintCarriers.has(kind))
  return blocks.map((block, index) => (index === last ? { cache, ...block } : block))
}

function readTools(request: ChatRequest): Tool[] {
  const { tools } = request
  const allowed = allowedNames(request)
  const found: Tool[] = []
  for (const [index, tool] of (tools ?? []).entries()) {
    if (tool.type !== 'function') {
      const param = `tools[${index}].type`
      throw badRequest('This model takes function tools only.', param, 'unsupported_value')
    }
    const { name, description, parameters, strict } = tool.function
    if (allowed !== undefined && !allowed.has(name)) continue
    found.push({
      name,
      schema: (parameters ?? noParameters(strict)) as JsonObject,
      ...(isGiven(description) && { description }),
      ...(isGiven(strict) && { isStrict: strict }),
      ...cacheOf(tool.function),
      ...cacheOf(tool),
    })
  }
  return found
}

/** The names of the allowed tools, where the choice restricts them. Vendors refuse a name that is not offered. */
function allowedNames({ tools, tool_choice: choice }: ChatRequest): Set<string> | undefined {
  if (typeof choice !== 'object' || choice?.type !== 'allowed_tools') return undefined
  const { mode, tools: allowed } = choice.allowed_tools
  const at = 'tool_choice.allowed_tools.tools'
  if (mode === 'required' && allowed.length === 0) throw invalid(at, 'it names no tool')
  const offered = new Set((tools ?? []).map((tool) => (tool.type === 'function' ? tool.function.name : '')))
  const names = new Set<string>()
  for (const [index, tool] of allowed.entries()) {
    const name = textIn(objectIn(tool['function'] as Json | undefined)['name'])
    if (!offered.has(name)) throw notOffered(name, `${at}[${index}]`)
    names.add(name)
  }
  return names
}

/** A forced choice of a tool that is not offered would have no effect. */
function checkForced(choice: ToolChoice | undefined, tools: readonly Tool[], at: string): void {
  if (typeof choice !== 'object' || tools.some(({ name }) => name === choice.name)) return
  throw notOffered(choice.name, at)
}

function notOffered(name: string, at: string): GatewayError {
  return invalid(at, `no tool is called '${excerpt(name)}'`)
}

function readToolChoice({ tool_choice: choice }: ChatRequest): ToolChoice | undefined {
  if (!isGiven(choice)) return undefined
  if (typeof choice === 'string') return isToolWord(choice) ? choice : { name: choice }
  if (choice.type === 'allowed_tools') return choice.allowed_tools.mode
  return { name: choice.type === 'function' ? choice.function.name : choice.custom.name }
}

function readFormat({ response_format: format }: ChatRequest): ReplyFormat | undefined {
  if (!isGiven(format) || format.type === 'text') return undefined
  if (format.type === 'json_object') {
    const schema = schemaBeside(format)
    return schema === undefined ? { kind: 'json' } : { kind: 'schema', schema }
  }
  const { name, description, schema, strict } = format.json_schema
  return {
    kind: 'schema',
    name,
    schema: (schema ?? {}) as JsonObject,
    ...(isGiven(description) && { description }),
    ...(isGiven(strict) && { isStrict: strict }),
  }
}

/**
 * Not in the protocol, but some vendors of open models take a schema here (Hugging Face as `value`), and their clients
 * send it to all vendors.
 */
function schemaBeside(format: Readonly<Record<string, unknown>>): JsonObject | undefined {
  const schema = (format['schema'] ?? format['value']) as Json | undefined
  return isObject(schema) && Object.keys(schema).length > 0 ? schema : undefined
}
