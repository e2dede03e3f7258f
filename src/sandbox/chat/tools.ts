import { badRequest } from './errors.ts'
import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { pickTools, type ToolMode } from '../tool-words.ts'

export type Tool = { readonly kind: 'function' | 'custom'; readonly name: string; readonly schema: unknown }

type ToolAsk = {
  body: Fields
  messages: readonly Fields[]
  /** The last user text without its steering words. */
  userText: string
  /** The NAME of `sandbox:tool=NAME`. */
  steered: string | undefined
}

/** The tools that the model calls, in the order offered. None means that it answers in words. */
export function chooseTools({ body, messages, userText, steered }: ToolAsk): readonly Tool[] {
  const isLegacy = asksForFunctions(body)
  const offered = isLegacy ? itemsIn(body.functions).map(readFunction) : itemsIn(body.tools).map(readTool)
  if (offered.length === 0) return []
  const { candidates, mode } = isLegacy
    ? readFunctionChoice(body.function_call, offered)
    : readChoice(body.tool_choice, offered)
  // A tool's result cannot hold images. Clients send them after it in a user message, some under the tool's name.
  const lastRole = messages.findLast(({ role }) => role !== 'user')?.role
  return pickTools({
    offered: candidates,
    mode,
    answersResult: lastRole === 'tool' || lastRole === 'function',
    userText,
    steered,
    isAlone: isLegacy || body.parallel_tool_calls === false,
  })
}

/** Whether the request uses `functions`, the predecessor of `tools`: one call at a time, answered in the same form. */
export function asksForFunctions({ tools, functions }: Fields): boolean {
  return itemsIn(tools).length === 0 && itemsIn(functions).length > 0
}

function readFunction(offered: unknown): Tool {
  return readTool({ type: 'function', function: offered })
}

function readTool(tool: unknown): Tool {
  const fields = fieldsIn(tool)
  const kind = fields.type === 'custom' ? 'custom' : 'function'
  const { name, parameters } = fieldsIn(fields[kind])
  return { kind, name: textIn(name), schema: isGiven(parameters) ? parameters : { type: 'object', properties: {} } }
}

type Choice = { mode: ToolMode; candidates: readonly Tool[] }

function readChoice(choice: unknown, offered: readonly Tool[]): Choice {
  if (!isGiven(choice) || choice === 'auto') return { mode: 'auto', candidates: offered }
  if (choice === 'none' || choice === 'required') return { mode: choice, candidates: offered }
  const fields = fieldsIn(choice)
  const { type } = fields
  if (type === 'allowed_tools') {
    const { mode, tools } = fieldsIn(fields.allowed_tools)
    const names = itemsIn(tools).map(nameOf)
    for (const name of names) if (!offered.some((tool) => tool.name === name)) throw notFound(name)
    return {
      mode: mode === 'required' ? 'required' : 'auto',
      candidates: offered.filter((tool) => names.includes(tool.name)),
    }
  }
  if (type !== 'function' && type !== 'custom') {
    const message = `Invalid value: '${textIn(choice) || textIn(type)}'. Supported values are: 'none', 'auto', and 'required'.`
    throw badRequest(message, 'tool_choice', 'invalid_value')
  }
  const name = nameOf(choice)
  const forced = offered.filter((tool) => tool.name === name)
  if (forced.length === 0) throw notFound(name)
  return { mode: 'forced', candidates: forced.slice(0, 1) }
}

function readFunctionChoice(choice: unknown, offered: readonly Tool[]): Choice {
  if (!isGiven(choice) || choice === 'auto') return { mode: 'auto', candidates: offered }
  if (choice === 'none') return { mode: 'none', candidates: offered }
  const name = textIn(fieldsIn(choice).name)
  const forced = offered.filter((tool) => tool.name === name)
  if (forced.length === 0) throw notFound(name, 'function_call')
  return { mode: 'forced', candidates: forced.slice(0, 1) }
}

function notFound(name: string, field: 'tool_choice' | 'function_call' = 'tool_choice') {
  const list = field === 'tool_choice' ? 'tools' : 'functions'
  return badRequest(`Invalid value for '${field}': tool '${name}' not found in '${list}' parameter.`, field)
}

function nameOf(reference: unknown): string {
  const { function: named, custom } = fieldsIn(reference)
  return textIn(fieldsIn(named).name) || textIn(fieldsIn(custom).name)
}
