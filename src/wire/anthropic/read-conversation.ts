import { badRequest, excerpt, type GatewayError } from '../../base/errors.ts'
import { isGiven, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import {
  efforts,
  isEffort,
  type Conversation,
  type Effort,
  type ReplyFormat,
  type TextBlock,
  type Thinking,
  type Turn,
  type UserBlock,
} from '../../capabilities/conversation.ts'
import { cacheOf } from '../cache-hint.ts'
import { invalid, notSupported } from '../issues.ts'
import { itemsIn, objectIn, placedObjectsIn, textIn } from '../loose.ts'
import { numberField } from '../number-field.ts'
import { arrangeTurns } from '../turns.ts'
import { refuseUnknownBlocks } from './known-blocks.ts'
import { blocksOf, readAssistantBlocks, readText, readUserBlock } from './read-blocks.ts'
import { readToolChoice, readTools } from './read-tools.ts'

/** A messages request as a neutral conversation, for vendors of other protocols: see docs/translation.md. */
export function readConversation({ native, outputTokensMax, searchesMax }: ChatAsk): Conversation {
  if (outputTokensMax === 0) {
    const message = "'max_tokens' must be at least 1: this model's vendor has no cache that a request could warm."
    throw badRequest(message, 'max_tokens')
  }
  refuseOwnServers(native)
  refuseSummary(native)
  refuseUnknownBlocks(native)
  const { system, turns } = readMessages(native)
  const format = readFormat(native)
  const thinking = readThinking(native)
  const user = objectIn(native['metadata'])['user_id']
  const offered = readTools(native)
  return {
    system,
    turns,
    tools: offered.tools,
    // A model that cannot search answers without searching; the clients that send the tool accept such an answer.
    hostedTools: searchesMax > 0 ? offered.hostedTools : [],
    ...readToolChoice(native, offered),
    outputTokensMax,
    stop: itemsIn(native['stop_sequences']).filter((stop) => typeof stop === 'string'),
    ...numberField('temperature', native['temperature']),
    ...(native['top_p'] !== none && numberField('topP', native['top_p'])),
    ...(native['top_k'] !== none && numberField('topK', native['top_k'])),
    ...(format !== undefined && { format }),
    ...(thinking !== undefined && { thinking }),
    ...(typeof user === 'string' && { user }),
  }
}

// How older clients write that they give no `top_p` or `top_k`.
const none = -1

/** The vendor would call these servers' tools itself; another vendor cannot, and its answer would differ unnoticed. */
function refuseOwnServers(body: JsonObject): void {
  const servers = body['mcp_servers'] ?? []
  if (Array.isArray(servers) && servers.length === 0) return
  throw notSupported('mcp_servers', "this model's vendor has none.")
}

/** Asked for a summary, another vendor's model would continue the conversation instead. */
function refuseSummary({ compaction }: JsonObject): void {
  if (isGiven(compaction)) throw notSupported('compaction', "this model's vendor has none.")
}

/** The first line of the instructions, in which the vendor's command-line tool tells the vendor about itself. */
const billingLine = /^x-anthropic-billing-header:[^\n]*(?:\n|$)/

function readMessages(body: JsonObject): Pick<Conversation, 'system' | 'turns'> {
  const written = blocksOf(body['system']).map((block) => ({
    ...block,
    text: textIn(block['text']).replace(billingLine, ''),
  }))
  const system = written.flatMap(readText)
  const said: Turn[] = []
  for (const [index, message] of placedObjectsIn(body['messages'])) {
    const turn = readTurn(message, `messages[${index}]`)
    if (turn.role === 'system' && said.length === 0) system.push(...turn.blocks)
    else if (turn.blocks.length > 0) said.push(turn)
  }
  if (said.length === 0) throw invalid('messages', 'nothing is said in them')
  markLast(said, body)
  return { system, turns: arrangeTurns(said) }
}

function readTurn(message: JsonObject, at: string): Turn {
  const blocks = blocksOf(message['content'])
  switch (textIn(message['role'])) {
    case 'assistant':
      return { role: 'assistant', blocks: readAssistantBlocks(message['content']) }
    case 'system':
      return { role: 'system', blocks: blocks.flatMap(readText) }
    default:
      return {
        role: 'user',
        blocks: blocks.flatMap((block, index) => readUserBlock(block, `${at}.content[${index}]`)),
      }
  }
}

/** A cache hint on the whole request applies to its last block. */
function markLast(turns: Turn[], body: JsonObject): void {
  const { cache } = cacheOf(body)
  const last = turns.at(-1)
  const block = last?.blocks.at(-1)
  if (cache === undefined || last === undefined || block === undefined || 'cache' in block) return
  if (block.kind !== 'text' && block.kind !== 'tool-result') return
  const marked: TextBlock | UserBlock = { ...block, cache }
  turns[turns.length - 1] = { role: last.role, blocks: [...last.blocks.slice(0, -1), marked] } as Turn
}

function readFormat(body: JsonObject): ReplyFormat | undefined {
  // The beta used `output_format`.
  const { format } = objectIn(body['output_config'])
  const given = format ?? body['output_format']
  if (!isGiven(given)) return undefined
  const { type, schema } = objectIn(given)
  const at = given === format ? 'output_config.format.type' : 'output_format.type'
  if (type !== 'json_schema') throw notOneOf(at, type, ['json_schema'])
  return { kind: 'schema', schema: objectIn(schema) }
}

const thinkingTypes: readonly string[] = ['enabled', 'adaptive', 'between_tools', 'disabled']

function readThinking(body: JsonObject): Thinking | undefined {
  const { type, budget_tokens: budget, display } = objectIn(body['thinking'])
  const effort = readEffort(body)
  if (type === undefined) return effort === undefined ? undefined : { effort, isShown: false }
  if (!thinkingTypes.includes(textIn(type))) throw notOneOf('thinking.type', type, thinkingTypes)
  if (type === 'disabled') return { effort: 'none', isShown: false }
  const wanted = effort === undefined ? {} : { effort }
  return { ...wanted, ...(typeof budget === 'number' && { budget }), isShown: display !== 'omitted' }
}

function readEffort(body: JsonObject): Effort | undefined {
  const { effort } = objectIn(body['output_config'])
  if (typeof effort !== 'string') return undefined
  if (!isEffort(effort)) throw notOneOf('output_config.effort', effort, efforts)
  return effort
}

/** An unknown value would have no effect, and the client would not notice. */
function notOneOf(at: string, received: Json | undefined, values: readonly string[]): GatewayError {
  const expected = values.map((value) => `'${value}'`).join(', ')
  return invalid(at, `expected ${expected}, received '${excerpt(textIn(received))}'`)
}
