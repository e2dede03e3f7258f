import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { pickTools, type ToolMode } from '../tool-words.ts'

export type Tool = {
  /** Whether the client runs the tool or the vendor does; the simulated vendor only runs web searches. */
  readonly kind: 'client' | 'search'
  readonly name: string
  readonly schema: unknown
  /** The first domain that the request allows for a search, or `example.com`. */
  readonly domain: string
}

type ToolAsk = {
  body: Fields
  /** The system prompt, or the user's text where there is none. */
  instructions: string
  answersResult: boolean
  /** The last user text without its steering words. */
  userText: string
  /** The NAME of `sandbox:tool=NAME`. */
  steered: string | undefined
}

/** The tools that the model calls, in the order offered. None means that it answers in words. */
export function chooseTools({ body, instructions, answersResult, userText, steered }: ToolAsk): readonly Tool[] {
  const tools = itemsIn(body.tools).map(fieldsIn).flatMap(readTool)
  const { disable_parallel_tool_use: isAlone, ...given } = fieldsIn(body.tool_choice)
  const isFree = !isGiven(given.type) || given.type === 'auto'
  const { type, name } = (isFree && choiceAskedIn(instructions)) || given
  return pickTools({
    offered: type === 'tool' ? tools.filter((tool) => tool.name === name) : tools,
    mode: modes[textIn(type)] ?? 'auto',
    answersResult,
    userText,
    steered,
    isAlone: isAlone === true,
  })
}

/**
 * Models that refuse to be forced to a call are asked for it in the instructions, as the vendor advises. The simulated
 * model obeys.
 */
function choiceAskedIn(instructions: string): Fields | undefined {
  const [isAsked, name] = /\banswer by calling (?:one of the tools|the tool ([\w-]+))/i.exec(instructions) ?? []
  if (isAsked === undefined) return undefined
  return name === undefined ? { type: 'any' } : { type: 'tool', name }
}

const modes: Readonly<Record<string, ToolMode>> = { none: 'none', any: 'required', tool: 'forced' }

const viewSchema = { type: 'object', properties: { command: { const: 'view' }, path: { const: '/' } } }

/** The client's own tools, and those dated tools that the simulator can call. It never calls the others. */
function readTool(tool: Fields): readonly Tool[] {
  const type = textIn(tool.type)
  const name = textIn(tool.name)
  if (type === '' || type === 'custom') return [{ kind: 'client', name, schema: tool.input_schema, domain: '' }]
  if (type.startsWith('web_search_')) {
    const [domain] = isGiven(tool.allowed_domains) ? itemsIn(tool.allowed_domains) : []
    return [{ kind: 'search', name, schema: undefined, domain: textIn(domain) || 'example.com' }]
  }
  if (type.startsWith('bash_')) {
    const schema = { type: 'object', properties: { command: { const: 'ls' } } }
    return [{ kind: 'client', name, schema, domain: '' }]
  }
  const isViewer = type.startsWith('text_editor_') || type.startsWith('memory_')
  return isViewer ? [{ kind: 'client', name, schema: viewSchema, domain: '' }] : []
}
