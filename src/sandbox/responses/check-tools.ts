import { badRequest, missing } from '../chat/errors.ts'
import { type Fields, fieldsIn, isGiven, shown } from '../fields.ts'
import { whyNoObject, whyNoRegex, whyNotStrict } from '../strict-schema.ts'
import { checkKnown, checkOneOf, checkSwitch, checkText, fieldsAt, listAt, nameAt, textAt } from './shape.ts'

const searches = ['web_search', 'web_search_2025_08_26', 'web_search_preview', 'web_search_preview_2025_03_11'] as const

/** The vendor's own tools that the simulator accepts but never calls. */
const hosted = [
  'apply_patch',
  'code_interpreter',
  'computer',
  'computer_use_preview',
  'file_search',
  'image_generation',
  'local_shell',
  'mcp',
  'programmatic_tool_calling',
  'shell',
] as const

const own = ['function', 'custom'] as const
const supported = [...own, 'namespace', 'tool_search', ...searches, ...hosted]

const shared = ['type', 'name', 'description', 'defer_loading', 'async', 'allowed_callers'] as const

/** Tools must have the vendor's flat form, without fields of other protocols. */
export function checkTools(tools: unknown): void {
  if (!isGiven(tools)) return
  for (const [index, tool] of listAt(tools, 'tools').entries()) checkTool(tool, `tools[${index}]`)
}

export function checkTool(tool: unknown, at: string): void {
  const fields = fieldsAt(tool, at)
  const { type } = fields
  if (!isGiven(type)) throw missing(`${at}.type`)
  checkOneOf(type, supported, `${at}.type`)
  if (type === 'namespace') checkNamespace(fields, at)
  else if (type === 'tool_search') checkToolSearch(fields, at)
  else if (type === 'function') checkFunction(fields, at)
  else if (type === 'custom') checkCustom(fields, at)
  else if (shown(type).startsWith('web_search')) checkWebSearch(fields, at)
}

/** Unlike in chat completions, a function without `strict` is made strict as far as its schema allows. */
function checkFunction(tool: Fields, at: string): void {
  const name = nameAt(tool.name, `${at}.name`)
  checkKnown(tool, [...shared, 'parameters', 'strict', 'output_schema'], at)
  checkText(tool.description, `${at}.description`)
  checkSwitch(tool.strict, `${at}.strict`)
  if (!isGiven(tool.parameters)) return
  const schema = fieldsAt(tool.parameters, `${at}.parameters`)
  const why = whyNoObject(schema) ?? whyNoRegex(schema) ?? (tool.strict === true ? whyNotStrict(schema) : undefined)
  if (why === undefined) return
  const message = `Invalid schema for function '${name}': ${why}`
  throw badRequest(message, `${at}.parameters`, 'invalid_function_parameters')
}

function checkCustom(tool: Fields, at: string): void {
  nameAt(tool.name, `${at}.name`)
  checkKnown(tool, [...shared, 'format'], at)
  if (!isGiven(tool.format)) return
  const format = fieldsAt(tool.format, `${at}.format`)
  checkOneOf(format.type, ['text', 'grammar'], `${at}.format.type`)
  checkKnown(format, format.type === 'text' ? ['type'] : ['type', 'syntax', 'definition'], `${at}.format`)
  if (format.type === 'text') return
  checkOneOf(format.syntax, ['lark', 'regex'], `${at}.format.syntax`)
  textAt(format.definition, `${at}.format.definition`)
}

function checkNamespace(space: Fields, at: string): void {
  nameAt(space.name, `${at}.name`)
  textAt(space.description, `${at}.description`)
  checkKnown(space, ['type', 'name', 'description', 'tools'], at)
  if (!isGiven(space.tools)) throw missing(`${at}.tools`)
  for (const [index, tool] of listAt(space.tools, `${at}.tools`).entries()) {
    const place = `${at}.tools[${index}]`
    const fields = fieldsAt(tool, place)
    checkOneOf(fields.type, own, `${place}.type`)
    if (fields.type === 'custom') checkCustom(fields, place)
    else checkFunction(fields, place)
  }
}

function checkToolSearch(tool: Fields, at: string): void {
  checkKnown(tool, ['type', 'execution', 'description', 'parameters'], at)
  if (isGiven(tool.execution)) checkOneOf(tool.execution, ['server', 'client'], `${at}.execution`)
}

function checkWebSearch(tool: Fields, at: string): void {
  const known = [
    'type',
    'filters',
    'search_context_size',
    'user_location',
    'external_web_access',
    'search_content_types',
  ]
  checkKnown(tool, known, at)
  const { search_context_size: size } = tool
  if (isGiven(size)) checkOneOf(size, ['low', 'medium', 'high'], `${at}.search_context_size`)
  if (isGiven(tool.filters)) checkKnown(fieldsIn(tool.filters), ['allowed_domains'], `${at}.filters`)
}
