import type { Json, JsonObject } from '../../base/json.ts'
import {
  isCallForced,
  type Conversation,
  type TextBlock,
  type Tool,
  type Turn,
} from '../../capabilities/conversation.ts'
import type { ModelRule } from '../../capabilities/model-rules.ts'
import { formatInstruction } from '../format-instruction.ts'
import { invalid } from '../issues.ts'
import { canBeHeld, fitsStrictLimits, hasFreeNames } from './strict-limits.ts'
import { writeToolSchema } from '../tool-schema.ts'
import { writeText } from './write-blocks.ts'
import { openCacheHints, type WriteCache } from './write-cache.ts'
import { writeMessages, type Message } from './write-messages.ts'
import { writeStrictSchema } from './write-schema.ts'
import { unbound } from './unbound-thinking.ts'
import { isAdaptive, writeThinking, type WrittenThinking } from './write-thinking.ts'

// Models before Opus 4.8 refuse instructions in the middle of a conversation.
const instructedAtStart = /claude-(?:[1-3]|\w+-4(?:$|@|[-.](?:[0-7](?!\d)|\d{8})))/

export type AskTarget = {
  readonly upstreamModel: string
  readonly stream: boolean
  readonly efforts: readonly string[]
  readonly rules: readonly ModelRule[]
  /** The model's maximum, for a client that gave no limit: the vendor requires one. */
  readonly outputTokensMax: number
  /** How many searches the hold covers. */
  readonly searchesMax: number
  namespaced(label: string): string
}

/** Writes a conversation of another protocol for this vendor. What it has no field for is left out. */
export function writeAsk(asked: Conversation, target: AskTarget): JsonObject {
  const conversation = target.rules.includes('refuses-forced-calls') ? unforced(asked) : asked
  const isNew = isAdaptive(target.efforts)
  const maxTokens = Math.min(conversation.outputTokensMax ?? target.outputTokensMax, target.outputTokensMax)
  const cache = openCacheHints(conversation)
  const { format } = conversation
  const held = format?.kind === 'schema' && canBeHeld(format.schema) ? format.schema : undefined
  const tools = writeTools(conversation, { ...target, held }, cache)
  const { leading, turns } = splitLeading(conversation.turns)
  const system = [...conversation.system, ...leading].flatMap((block) => writeText(block, cache))
  if (format !== undefined && held === undefined) system.push({ type: 'text', text: formatInstruction(format) })
  // Messages must not be empty, so instructions alone are sent as the user's message.
  const isAlone = turns.length === 0 && system.length > 0
  const takesInstructions = isNew && !instructedAtStart.test(target.upstreamModel)
  const style = { isNew, takesInstructions, cache }
  const written: Message[] = isAlone ? [{ role: 'user', content: system }] : writeMessages(turns, style)
  const asksToThink = writeThinking({ ...target, conversation, messages: written, maxTokens })
  const { messages, thinking } = target.rules.includes('binds-thinking')
    ? unbound(written, asksToThink, isCallForced(conversation.toolChoice))
    : { messages: written, thinking: asksToThink }
  const stop = writeStop(conversation.stop)
  const outputConfig = writeOutputConfig(held, thinking)
  return {
    model: target.upstreamModel,
    max_tokens: maxTokens,
    ...(target.stream && { stream: true }),
    ...(system.length > 0 && !isAlone && { system }),
    messages,
    ...(tools.length > 0 && { tools }),
    ...writeToolChoice(conversation, tools),
    ...(stop.length > 0 && { stop_sequences: stop }),
    ...(takesSampling(target, thinking) && writeSampling(conversation)),
    ...(thinking.thinking !== undefined && { thinking: thinking.thinking }),
    ...(outputConfig !== undefined && { output_config: outputConfig }),
    ...(conversation.user !== undefined && { metadata: { user_id: target.namespaced(conversation.user) } }),
  }
}

/** Asks in words for the call that a newer model refuses to be forced to, as its vendor advises. */
function unforced(conversation: Conversation): Conversation {
  const { tools, hostedTools, toolChoice, system } = conversation
  if (tools.length + hostedTools.length === 0 || !isCallForced(toolChoice)) return conversation
  const called = typeof toolChoice === 'object' ? `the tool ${toolChoice.name}` : 'one of the tools'
  const instruction: TextBlock = { kind: 'text', text: `Answer by calling ${called}, not in words.` }
  return { ...conversation, system: [...system, instruction], toolChoice: 'auto' }
}

/** The vendor refuses a stop sequence of only whitespace; without it the answer would silently not stop there. */
function writeStop(sequences: readonly string[]): readonly string[] {
  const given = sequences.filter((sequence) => sequence !== '')
  if (given.every((sequence) => sequence.trim() !== '')) return given
  throw invalid('stop', 'this model takes no stop sequence that is only whitespace')
}

/** Instructions before the first message belong to the system prompt. */
function splitLeading(turns: readonly Turn[]): { leading: readonly TextBlock[]; turns: readonly Turn[] } {
  const first = turns.findIndex(({ role }) => role !== 'system')
  const count = first === -1 ? turns.length : first
  const leading = turns.slice(0, count).flatMap((turn) => (turn.role === 'system' ? turn.blocks : []))
  return { leading, turns: turns.slice(count) }
}

type ToolsTarget = Pick<AskTarget, 'searchesMax'> & {
  /** The schema that the answer must follow. */
  readonly held: JsonObject | undefined
}

function writeTools(conversation: Conversation, target: ToolsTarget, cache: WriteCache): JsonObject[] {
  const { hostedTools, turns } = conversation
  const tools = conversation.tools.map((tool) => {
    const schema = writeToolSchema(tool.schema)
    return { ...tool, schema, isStrict: tool.isStrict === true && !hasFreeNames(schema) }
  })
  const isHeld = fitsStrictLimits(tools, target.held)
  const written = tools.map((tool) => writeTool(tool, isHeld && tool.isStrict, cache))
  const names = new Set(tools.map(({ name }) => name))
  for (const { usesMax } of hostedTools) {
    if (names.has('web_search')) continue
    const uses = Math.min(usesMax ?? target.searchesMax, target.searchesMax)
    written.push({ type: 'web_search_20250305', name: 'web_search', ...(uses > 0 && { max_uses: uses }) })
  }
  return written.length > 0 ? written : writeCalled(turns)
}

function writeTool(tool: Tool, isStrict: boolean, cache: WriteCache): JsonObject {
  return {
    name: tool.name,
    ...(tool.description !== undefined && { description: tool.description }),
    input_schema: isStrict ? writeStrictSchema(tool.schema) : tool.schema,
    ...(isStrict && { strict: true }),
    ...cache(tool),
  }
}

/** A conversation with calls must offer tools, even where the client no longer does. */
function writeCalled(turns: readonly Turn[]): JsonObject[] {
  const names = new Set<string>()
  for (const { role, blocks } of turns) {
    if (role !== 'assistant') continue
    for (const block of blocks) if (block.kind === 'tool-call') names.add(block.name)
  }
  return [...names].map((name) => ({ name, input_schema: { type: 'object' } }))
}

const choices = { auto: 'auto', none: 'none', required: 'any' } as const

function writeToolChoice(conversation: Conversation, tools: readonly JsonObject[]): JsonObject {
  const { toolChoice, parallelTools } = conversation
  if (tools.length === 0) return {}
  const isOffered = conversation.tools.length + conversation.hostedTools.length > 0
  if (!isOffered || toolChoice === 'none') return { tool_choice: { type: 'none' } }
  const alone = parallelTools === false ? { disable_parallel_tool_use: true } : {}
  if (typeof toolChoice === 'object') return { tool_choice: { type: 'tool', name: toolChoice.name, ...alone } }
  if (toolChoice === undefined && parallelTools !== false) return {}
  return { tool_choice: { type: choices[toolChoice ?? 'auto'], ...alone } }
}

/**
 * Opus 4.7, the first model with the effort `xhigh`, and all later ones refuse sampling; the others do while they
 * think.
 */
function takesSampling({ efforts }: AskTarget, { thinking }: WrittenThinking): boolean {
  return !efforts.includes('xhigh') && (thinking === undefined || thinking['type'] === 'disabled')
}

/** The vendor takes a temperature up to 1, and none beside `top_p`. */
function writeSampling({ temperature, topP, topK }: Conversation): JsonObject {
  const sampling: Record<string, Json> = {}
  if (temperature !== undefined) sampling['temperature'] = Math.min(1, Math.max(0, temperature))
  else if (topP !== undefined) sampling['top_p'] = topP
  if (topK !== undefined) sampling['top_k'] = Math.max(0, Math.round(topK))
  return sampling
}

function writeOutputConfig(held: JsonObject | undefined, { effort }: WrittenThinking): JsonObject | undefined {
  if (held === undefined && effort === undefined) return undefined
  return {
    ...(effort !== undefined && { effort }),
    ...(held !== undefined && { format: { type: 'json_schema', schema: writeStrictSchema(held) } }),
  }
}
