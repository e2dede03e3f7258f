import { badRequest, missing } from '../chat/errors.ts'
import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { pickTools, type ToolMode } from '../tool-words.ts'
import { checkKnown, checkOneOf, listAt, textAt } from './shape.ts'

export type Tool = {
  /** The vendor itself runs a web search; the client runs all other tools. */
  readonly kind: 'function' | 'custom' | 'tool_search' | 'web_search'
  readonly name: string
  readonly namespace: string | undefined
  readonly schema: unknown
}

type ToolAsk = {
  body: Fields
  items: readonly Fields[]
  /** The last user text without its steering words. */
  userText: string
  /** The NAME of `sandbox:tool=NAME`. */
  steered: string | undefined
}

/** The tools that the model calls, in the order offered. None means that it answers in words. */
export function chooseTools({ body, items, userText, steered }: ToolAsk): readonly Tool[] {
  const laterTools = items.flatMap(({ type, tools }) =>
    type === 'additional_tools' || type === 'tool_search_output' ? itemsIn(tools).map(fieldsIn) : [],
  )
  // A deferred tool is not available until a tool search has found it.
  const first = itemsIn(body.tools)
    .map(fieldsIn)
    .filter((tool) => tool.defer_loading !== true)
  const { mode, offered } = readChoice(body.tool_choice, [...first, ...laterTools].flatMap(readTool))
  const lastType = textIn(items.at(-1)?.type)
  // As in chat completions, what belongs to a result may follow it in a user message.
  const saidType = textIn(items.findLast(({ role }) => role !== 'user')?.type)
  const answersResult = lastType.endsWith('_output') || saidType.endsWith('call_output')
  const isAlone = body.parallel_tool_calls === false
  return pickTools({ offered, mode, answersResult, userText, steered, isAlone })
}

const searchSchema = { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] }

/** The tools that the simulator can call. */
function readTool(tool: Fields): readonly Tool[] {
  const type = textIn(tool.type)
  const name = textIn(tool.name)
  const parameters = isGiven(tool.parameters) ? tool.parameters : undefined
  if (type === 'function' || type === 'custom') {
    return [{ kind: type, name, namespace: undefined, schema: parameters ?? { type: 'object', properties: {} } }]
  }
  if (type === 'namespace') {
    const inside = itemsIn(tool.tools).map(fieldsIn)
    return inside.flatMap(readTool).map((own) => ({ ...own, namespace: name }))
  }
  if (type === 'tool_search' && tool.execution === 'client') {
    return [{ kind: 'tool_search', name: 'tool_search', namespace: undefined, schema: parameters ?? searchSchema }]
  }
  if (!type.startsWith('web_search')) return []
  return [{ kind: 'web_search', name: 'web_search', namespace: undefined, schema: searchSchema }]
}

type Choice = { readonly mode: ToolMode; readonly offered: readonly Tool[] }

function readChoice(choice: unknown, offered: readonly Tool[]): Choice {
  if (!isGiven(choice) || choice === 'auto') return { mode: 'auto', offered }
  if (typeof choice === 'string') {
    checkOneOf(choice, ['none', 'auto', 'required'], 'tool_choice')
    if (choice === 'required' && offered.length === 0) {
      throw badRequest("Tool choice 'required' must be specified with 'tools' parameter.", 'tool_choice')
    }
    return { mode: choice === 'none' ? 'none' : 'required', offered }
  }
  const fields = fieldsIn(choice)
  if (fields.type !== 'allowed_tools') {
    return { mode: 'forced', offered: findTools(fields, offered, 'tool_choice').slice(0, 1) }
  }
  checkKnown(fields, ['type', 'mode', 'tools'], 'tool_choice')
  checkOneOf(fields.mode, ['auto', 'required'], 'tool_choice.mode')
  const allowed = new Set(
    listAt(fields.tools, 'tool_choice.tools').flatMap((named, index) =>
      findTools(fieldsIn(named), offered, `tool_choice.tools[${index}]`),
    ),
  )
  return {
    mode: fields.mode === 'required' ? 'required' : 'auto',
    offered: offered.filter((tool) => allowed.has(tool)),
  }
}

function findTools(named: Fields, offered: readonly Tool[], at: string): readonly Tool[] {
  const type = textIn(named.type)
  if (type === '') throw missing(`${at}.type`)
  const isOwn = type === 'function' || type === 'custom'
  const name = isOwn ? textAt(named.name, `${at}.name`) : type
  checkKnown(named, isOwn ? ['type', 'name', 'namespace'] : ['type'], at)
  const found = offered.filter((tool) => {
    if (!isOwn) return type.startsWith(tool.kind)
    return tool.kind === type && tool.name === name && (!isGiven(named.namespace) || tool.namespace === named.namespace)
  })
  if (found.length === 0) throw badRequest(`Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice')
  return found
}
