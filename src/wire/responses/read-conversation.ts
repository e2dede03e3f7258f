import { isGiven, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import {
  isEffort,
  type Conversation,
  type ReplyFormat,
  type TextBlock,
  type Thinking,
  type Turn,
} from '../../capabilities/conversation.ts'
import { invalid } from '../issues.ts'
import { numberField } from '../number-field.ts'
import { arrangeTurns } from '../turns.ts'
import { carriedSignature, readItem } from './read-items.ts'
import type { ResponsesRequest } from './schema.ts'
import { shownOf } from './shown.ts'
import { hostedTools, offeredTools, readToolChoice } from './tools.ts'

/** The request, which was checked when it was read; numbers that kept their own text become doubles below. */
export function requestOf({ native }: Pick<ChatAsk, 'native'>): ResponsesRequest {
  return native as unknown as ResponsesRequest
}

/** A request as a neutral conversation for any vendor. What a vendor has no field for is left out. */
export function readConversation(ask: ChatAsk): Conversation {
  const request = requestOf(ask)
  const offered = offeredTools(request)
  const toolChoice = readToolChoice(request, offered)
  const format = readFormat(request)
  const thinking = readThinking(request)
  const { verbosity } = request.text ?? {}
  const { max_output_tokens: outputTokensMax, parallel_tool_calls: parallelTools } = request
  const { prompt_cache_key: cacheKey } = request
  const user = request.safety_identifier ?? request.user
  const { logprobs, wantsReasoning } = shownOf(request)
  return {
    ...readInput(request),
    tools: [...offered.values()].map(({ tool }) => tool),
    hostedTools: hostedTools(request, ask.searchesMax),
    stop: [],
    ...(toolChoice !== undefined && { toolChoice }),
    ...(isGiven(parallelTools) && { parallelTools }),
    ...(isGiven(outputTokensMax) && { outputTokensMax }),
    ...numberField('temperature', request.temperature),
    ...numberField('topP', request.top_p),
    ...(logprobs !== undefined && { logprobs }),
    ...(format !== undefined && { format }),
    ...(thinking !== undefined ? { thinking } : wantsReasoning && { showsOwnThinking: true }),
    ...(isGiven(verbosity) && { verbosity }),
    ...(isGiven(user) && { user }),
    ...(isGiven(cacheKey) && { cacheKey }),
  }
}

/** Instructions at the beginning become the system prompt; those in the middle keep their place. */
function readInput({ instructions, input }: ResponsesRequest): Pick<Conversation, 'system' | 'turns'> {
  const system: TextBlock[] = isGiven(instructions) && instructions !== '' ? [{ kind: 'text', text: instructions }] : []
  const said: Turn[] = []
  const items = typeof input === 'string' ? [{ role: 'user' as const, content: input }] : input
  let signature: string | undefined
  for (const [index, item] of items.entries()) {
    const turn = readItem(item, `input[${index}]`, signature)
    signature = carriedSignature(item)
    if (turn === undefined || turn.blocks.length === 0) continue
    if (turn.role !== 'system' || said.length > 0) said.push(turn)
    else for (const block of turn.blocks) system.push(block)
  }
  if (said.length === 0 && system.length === 0) throw invalid('input', 'nothing is said in it')
  return { system, turns: arrangeTurns(said) }
}

function readFormat({ text }: ResponsesRequest): ReplyFormat | undefined {
  const format = text?.format
  if (!isGiven(format) || format.type === 'text') return undefined
  if (format.type === 'json_object') return { kind: 'json' }
  const { name, description, schema, strict } = format
  return {
    kind: 'schema',
    name,
    schema: schema as JsonObject,
    ...(isGiven(description) && { description }),
    ...(isGiven(strict) && { isStrict: strict }),
  }
}

/** Without an effort the model's default applies, whether the reasoning is to be shown or not. */
function readThinking(request: ResponsesRequest): Thinking | undefined {
  const effort = request.reasoning?.effort
  if (!isEffort(effort)) return undefined
  return { effort, isShown: shownOf(request).wantsReasoning }
}
