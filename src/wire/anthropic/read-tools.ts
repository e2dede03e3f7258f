import { badRequest, excerpt } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Conversation, HostedTool, Tool, ToolChoice } from '../../capabilities/conversation.ts'
import { cacheOf } from '../cache-hint.ts'
import { invalid } from '../issues.ts'
import { objectIn, objectsIn, textIn } from '../loose.ts'
import { shortName } from '../short-name.ts'
import { familyOf, toolsIn, typeOf } from './tools.ts'

const text = { type: 'string' }
const command = (values: readonly string[]) => ({ type: 'string', enum: values })

/** The vendor's own client-side tools, described for any model; clients run them with the same input. */
const emulated: ReadonlyMap<string, Pick<Tool, 'description' | 'schema'>> = new Map([
  [
    'bash',
    {
      description: 'Runs a command in a persistent shell and returns what it printed. `restart` starts the shell anew.',
      schema: { type: 'object', properties: { command: text, restart: { type: 'boolean' } } },
    },
  ],
  [
    'text_editor',
    {
      description: 'Shows, makes and changes text files. `view_range` is a pair of line numbers.',
      schema: {
        type: 'object',
        properties: {
          command: command(['view', 'create', 'str_replace', 'insert']),
          path: text,
          view_range: { type: 'array', items: { type: 'integer' } },
          file_text: text,
          old_str: text,
          new_str: text,
          insert_line: { type: 'integer' },
          insert_text: text,
        },
        required: ['command', 'path'],
      },
    },
  ],
])

type Tools = { readonly tools: readonly Tool[]; readonly hostedTools: readonly HostedTool[] }

/** Tools for any vendor. A tool that only Anthropic's models know is refused: without it the answer would differ. */
export function readTools(body: JsonObject): Tools {
  const tools: Tool[] = []
  const hostedTools: HostedTool[] = []
  const isOffered = offering(body)
  for (const { tool, at } of toolsIn(body)) {
    if (!isOffered(tool)) continue
    checkName(tool, at)
    const type = typeOf(tool)
    const family = familyOf(type) ?? type
    const known = emulated.get(family)
    if (type === '' || type === 'custom') tools.push(readTool(tool))
    else if (known !== undefined) tools.push({ name: shortName(textIn(tool['name'])), ...known, ...cacheOf(tool) })
    else if (family === 'web_search') {
      const uses = tool['max_uses']
      hostedTools.push({ kind: 'web-search', ...(typeof uses === 'number' && { usesMax: uses }) })
    } else if (!family.startsWith('tool_search_tool_')) {
      // All tools are sent, so tool search is not needed. Any other hosted tool is one that this model does not have.
      throw badRequest(
        `The tool '${excerpt(type)}' is not available with this model.`,
        `${at}.type`,
        'unsupported_value',
      )
    }
  }
  return { tools, hostedTools }
}

// The vendor's own rule; other vendors allow the same characters but shorter names.
const namePattern = /^[a-zA-Z0-9_-]{1,128}$/

function checkName({ name }: JsonObject, at: string): void {
  if (typeof name !== 'string' || namePattern.test(name)) return
  throw invalid(`${at}.name`, 'must be 1 to 128 of A-Z, a-z, 0-9, _ and -')
}

/**
 * A tool with deferred loading is shown to the model only once it was found: the vendor's command-line tool always
 * sends one that is never to be called. Where the vendor would search for tools, no other can, so all are offered.
 */
function offering(body: JsonObject): (tool: JsonObject) => boolean {
  const placed = toolsIn(body)
  if (placed.some(({ tool }) => typeOf(tool).startsWith('tool_search_tool_'))) return () => true
  if (!placed.some(({ tool }) => tool['defer_loading'] === true)) return () => true
  const found = foundTools(body)
  return (tool) => tool['defer_loading'] !== true || found.has(textIn(tool['name']))
}

function foundTools(body: JsonObject): ReadonlySet<string> {
  const names = new Set([textIn(objectIn(body['tool_choice'])['name'])])
  for (const { content } of objectsIn(body['messages'])) {
    for (const block of objectsIn(content)) {
      if (block['type'] === 'tool_use') names.add(textIn(block['name']))
      for (const part of [objectIn(block['tool']), ...objectsIn(block['content'])]) {
        if (part['type'] === 'tool_reference') names.add(textIn(part['tool_name']) || textIn(part['name']))
      }
    }
  }
  return names
}

function readTool(tool: JsonObject): Tool {
  const { description, strict, input_schema: schema } = tool
  return {
    name: shortName(textIn(tool['name'])),
    ...(typeof description === 'string' && { description }),
    schema: objectIn(schema),
    ...(typeof strict === 'boolean' && { isStrict: strict }),
    ...cacheOf(tool),
  }
}

export function readToolChoice(body: JsonObject, offered: Tools): Pick<Conversation, 'toolChoice' | 'parallelTools'> {
  const choice = objectIn(body['tool_choice'])
  const alone = choice['disable_parallel_tool_use']
  const toolChoice = choiceOf(choice, body, offered)
  return {
    ...(toolChoice !== undefined && { toolChoice }),
    ...(typeof alone === 'boolean' && { parallelTools: !alone }),
  }
}

function choiceOf({ type, name }: JsonObject, body: JsonObject, offered: Tools): ToolChoice | undefined {
  switch (textIn(type)) {
    case 'auto':
      return 'auto'
    case 'none':
      return 'none'
    case 'any':
      return anyOf(offered)
    case 'tool':
      return forced(textIn(name), body, offered)
    default:
      return undefined
  }
}

function anyOf({ tools, hostedTools }: Tools): ToolChoice {
  if (tools.length + hostedTools.length > 0) return 'required'
  throw invalid('tool_choice', 'there is no tool that could be called')
}

/** A hosted tool is offered to other vendors, which cannot be forced to use it. */
function forced(name: string, body: JsonObject, { tools }: Tools): ToolChoice | undefined {
  const neutral = shortName(name)
  if (tools.some((tool) => tool.name === neutral)) return { name: neutral }
  if (toolsIn(body).some(({ tool }) => tool['name'] === name)) return undefined
  throw invalid('tool_choice.name', `none of 'tools' is called '${excerpt(name)}'`)
}
