import type { SandboxModel } from '../model.ts'
import { type Fields, fieldsIn, isFields, isGiven, itemsIn, shown } from '../fields.ts'
import { invalid } from './errors.ts'
import { checkExtras, checkFlag, checkOneOf, checkPattern, fieldsAt, listAt, textAt, wholeAt } from './shape.ts'
import { isThinking } from './thinking.ts'

const customFields = [
  'type',
  'name',
  'description',
  'input_schema',
  'strict',
  'cache_control',
  'defer_loading',
  'eager_input_streaming',
  'input_examples',
  'allowed_callers',
] as const

/** The vendor's built-in tools carry the date of their version. */
const datedTool =
  /^(?:web_search|web_fetch|code_execution|bash|text_editor|memory|computer|browser|computer_toolset|browser_toolset|tool_search_tool_(?:regex|bm25))_\d{8}$/

export function checkTools(body: Fields, model: SandboxModel): void {
  const tools = isGiven(body.tools) ? listAt('tools', body.tools) : []
  const names = new Set<unknown>()
  for (const [index, tool] of tools.entries()) {
    const fields = fieldsAt(`tools.${index}`, tool)
    checkTool(`tools.${index}`, fields)
    if (names.has(fields.name)) throw invalid('tools', 'Tool names must be unique.')
    if (isGiven(fields.name)) names.add(fields.name)
  }
  checkChoice(body, tools, model)
}

function checkTool(place: string, tool: Fields): void {
  const { type } = tool
  if (!isGiven(type) || type === 'custom') return checkCustomTool(`${place}.custom`, tool)
  if (typeof type !== 'string' || !datedTool.test(type)) {
    const message = `Input tag '${shown(type)}' found using 'type' does not match any of the expected tags: 'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'`
    throw invalid(place, message)
  }
  if (type.startsWith('web_search_')) checkWebSearch(`${place}.${type}`, tool)
}

function checkCustomTool(place: string, tool: Fields): void {
  checkPattern(`${place}.name`, tool.name, /^[a-zA-Z0-9_-]{1,128}$/)
  checkExtras(place, tool, customFields)
  if (isGiven(tool.description)) textAt(`${place}.description`, tool.description)
  checkFlag(`${place}.strict`, tool.strict)
  const at = `${place}.input_schema`
  const schema = fieldsAt(at, tool.input_schema)
  checkOneOf(`${at}.type`, schema.type, ['object'])
  if ('oneOf' in schema || 'allOf' in schema || 'anyOf' in schema) {
    throw invalid(at, 'input_schema does not support oneOf, allOf, or anyOf at the top level')
  }
  if (tool.strict === true) checkNoMoreProperties(at, schema)
}

function checkWebSearch(place: string, tool: Fields): void {
  checkOneOf(`${place}.name`, tool.name, ['web_search'])
  if (isGiven(tool.max_uses)) wholeAt(`${place}.max_uses`, tool.max_uses, 1)
  if (isGiven(tool.allowed_domains) && isGiven(tool.blocked_domains)) {
    throw invalid(place, 'Only one of allowed_domains and blocked_domains may be given.')
  }
}

/** Where the vendor enforces a schema, every object in it must set `additionalProperties` to false. */
export function checkNoMoreProperties(place: string, schema: unknown): void {
  if (!isFields(schema)) return
  const isObject = schema.type === 'object' || 'properties' in schema
  if (isObject && schema.additionalProperties !== false) {
    throw invalid(place, "For 'object' type, 'additionalProperties' must be explicitly set to false")
  }
  for (const part of partsOf(schema)) checkNoMoreProperties(place, part)
}

function partsOf({ properties, $defs, definitions, items, anyOf, oneOf, allOf }: Fields): readonly unknown[] {
  const named = [properties, $defs, definitions].flatMap((group) => Object.values(fieldsIn(group)))
  return [...named, items, ...[anyOf, oneOf, allOf].flatMap(itemsIn)]
}

function checkChoice(body: Fields, tools: readonly unknown[], { forcedCalls }: SandboxModel): void {
  const { tool_choice: choice, thinking } = body
  if (!isGiven(choice)) return
  const fields = fieldsAt('tool_choice', choice)
  const { type } = fields
  checkOneOf('tool_choice.type', type, ['auto', 'any', 'tool', 'none'])
  const place = `tool_choice.${shown(type)}`
  const known = type === 'none' ? ['type'] : ['type', 'disable_parallel_tool_use']
  checkExtras(place, fields, type === 'tool' ? [...known, 'name'] : known)
  checkFlag(`${place}.disable_parallel_tool_use`, fields.disable_parallel_tool_use)
  if (type === 'tool') {
    const name = textAt(`${place}.name`, fields.name)
    if (!tools.some((tool) => fieldsIn(tool).name === name)) {
      throw invalid('', `Tool '${name}' not found in provided tools`)
    }
  }
  if (tools.length === 0 && type !== 'none') {
    throw invalid('tool_choice', '`tool_choice` may only be specified while providing `tools`.')
  }
  const isForced = type === 'any' || type === 'tool'
  if (isForced && forcedCalls === false) {
    throw invalid('tool_choice', 'type "tool" and "any" are not supported for this model.')
  }
  if (isForced && isThinking(thinking)) {
    throw invalid('', 'Thinking may not be enabled when tool_choice forces tool use.')
  }
}
