import { badRequest, missing } from '../chat/errors.ts'
import { type Fields, isGiven, shown, textIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { checkContent, checkOutput } from './check-parts.ts'
import { checkTool } from './check-tools.ts'
import { isOurReasoning } from './sealed.ts'
import { checkKnown, checkOneOf, checkText, fieldsAt, listAt, textAt } from './shape.ts'

type Kind = {
  /** The fields it may have besides `type`. */
  readonly known: readonly string[]
  /** The prefix of the vendor's ids for this type, where the vendor checks it. */
  readonly idStart?: string
}

/** The items whose contents the simulator checks. */
const kinds: Readonly<Record<string, Kind>> = {
  message: { known: ['id', 'role', 'content', 'status', 'phase'] },
  function_call: {
    known: ['id', 'call_id', 'name', 'namespace', 'arguments', 'status', 'async', 'caller'],
    idStart: 'fc',
  },
  function_call_output: { known: ['id', 'call_id', 'output', 'status', 'caller', 'name', 'namespace'] },
  custom_tool_call: {
    known: ['id', 'call_id', 'name', 'namespace', 'input', 'status', 'async', 'caller'],
    idStart: 'ctc',
  },
  custom_tool_call_output: { known: ['id', 'call_id', 'output', 'status', 'caller'] },
  reasoning: { known: ['id', 'summary', 'content', 'encrypted_content', 'status'], idStart: 'rs' },
  tool_search_call: { known: ['id', 'call_id', 'arguments', 'execution', 'status'] },
  tool_search_output: { known: ['id', 'call_id', 'tools', 'execution', 'status'] },
  additional_tools: { known: ['id', 'role', 'tools'] },
  web_search_call: { known: ['id', 'action', 'status'], idStart: 'ws' },
  item_reference: { known: ['id'] },
}

/** Items of the vendor's other tools, which are accepted unchecked. */
const others = [
  'agent_message',
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  'compaction',
  'compaction_trigger',
  'computer_call',
  'computer_call_output',
  'configuration_update',
  'file_search_call',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'program',
  'program_output',
  'shell_call',
  'shell_call_output',
] as const

const supported = [...Object.keys(kinds), ...others]
const idCharactersMax = 64

/**
 * The vendor's rules on the input: items are complete, calls are answered, and reasoning is followed by its outcome.
 */
export function checkInput({ input, store }: Fields, model: SandboxModel): readonly Fields[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  if (!isGiven(input) || (Array.isArray(input) && input.length === 0)) {
    const message = 'One of "input" or "previous_response_id" or \'prompt\' or \'conversation_id\' must be provided.'
    throw badRequest(message, 'input', 'missing_required_parameter')
  }
  const items = listAt(input, 'input').map((item, index) => readItem(fieldsAt(item, `input[${index}]`), index))
  for (const [index, item] of items.entries()) {
    checkItem(item, `input[${index}]`)
    if (item.type === 'reasoning') checkThought(item, { at: `input[${index}]`, isKept: store !== false, model })
  }
  checkIds(items)
  checkCalls(items)
  checkFollowing(items)
  return items
}

/** `type` is optional for a message. */
function readItem(item: Fields, index: number): Fields {
  if (isGiven(item.type)) return item
  if (!isGiven(item.role)) throw missing(`input[${index}].type`)
  return { ...item, type: 'message' }
}

function checkItem(item: Fields, at: string): void {
  const { type, id } = item
  checkOneOf(type, supported, `${at}.type`)
  const kind = kinds[textIn(type)]
  if (kind === undefined) return
  if (type === 'item_reference') throw notKept(textAt(id, `${at}.id`))
  checkKnown(item, ['type', ...kind.known], at)
  if (isGiven(id)) {
    const { idStart } = type === 'message' && item.role === 'assistant' ? { idStart: 'msg' } : kind
    checkId(textAt(id, `${at}.id`, idCharactersMax), idStart, `${at}.id`)
  }
  if (isGiven(item.status)) checkOneOf(item.status, ['in_progress', 'completed', 'incomplete'], `${at}.status`)
  checkBody(item, at)
}

const saidIn = { function_call: 'arguments', custom_tool_call: 'input' } as const

function checkBody(item: Fields, at: string): void {
  const callId = (): string => textAt(item.call_id, `${at}.call_id`, idCharactersMax)
  switch (item.type) {
    case 'message':
      return checkContent(item, at)
    case 'function_call':
    case 'custom_tool_call':
      callId()
      textAt(item.name, `${at}.name`)
      textAt(item[saidIn[item.type]], `${at}.${saidIn[item.type]}`)
      return
    case 'function_call_output':
    case 'custom_tool_call_output':
      callId()
      return checkOutput(item.output, `${at}.output`)
    case 'reasoning':
      if (!isGiven(item.summary)) throw missing(`${at}.summary`)
      for (const [index, part] of listAt(item.summary, `${at}.summary`).entries()) {
        textAt(fieldsAt(part, `${at}.summary[${index}]`).text, `${at}.summary[${index}].text`)
      }
      return
    case 'tool_search_call':
      checkText(item.call_id, `${at}.call_id`, idCharactersMax)
      if (item.arguments === undefined) throw missing(`${at}.arguments`)
      return
    case 'tool_search_output':
    case 'additional_tools':
      checkText(item.call_id, `${at}.call_id`, idCharactersMax)
      if (item.type === 'additional_tools') checkOneOf(item.role, ['developer'], `${at}.role`)
      for (const [index, tool] of listAt(item.tools, `${at}.tools`).entries()) checkTool(tool, `${at}.tools[${index}]`)
  }
}

function checkId(id: string, start: string | undefined, param: string): void {
  if (start === undefined || id.startsWith(start)) return
  throw badRequest(`Invalid '${param}': '${id}'. Expected an ID that begins with '${start}'.`, param, 'invalid_value')
}

type Thought = { readonly at: string; readonly isKept: boolean; readonly model: SandboxModel }

/** With `store: false` reasoning must come back with its encrypted content. */
function checkThought({ id, encrypted_content: sealed }: Fields, { at, isKept, model }: Thought): void {
  if (isGiven(sealed)) {
    const content = textAt(sealed, `${at}.encrypted_content`)
    if (isOurReasoning(model, content)) return
    const message = `The encrypted content ${content.slice(0, 12)}... could not be verified. Reason: Encrypted content could not be decrypted or parsed.`
    throw badRequest(message, `${at}.encrypted_content`, 'invalid_encrypted_content')
  }
  if (!isGiven(id)) throw missing(`${at}.id`)
  if (!isKept) throw notKept(textIn(id))
}

function notKept(id: string) {
  const message = `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`
  return badRequest(message, 'input')
}

function checkIds(items: readonly Fields[]): void {
  const seen = new Set<unknown>()
  for (const { id } of items) {
    if (!isGiven(id)) continue
    if (seen.has(id)) {
      const message = `Duplicate item found with id ${shown(id)}. Remove duplicate items from your input and try again.`
      throw badRequest(message, 'input')
    }
    seen.add(id)
  }
}

/** The name of each kind of call and the item that answers it. A tool search made by the vendor needs no answer. */
const answers: Readonly<Record<string, { readonly by: string; readonly called: string }>> = {
  function_call: { by: 'function_call_output', called: 'function call' },
  custom_tool_call: { by: 'custom_tool_call_output', called: 'custom tool call' },
  tool_search_call: { by: 'tool_search_output', called: 'tool search call' },
}

function checkCalls(items: readonly Fields[]): void {
  const open = new Map<string, string>()
  for (const { type, call_id: id } of items) {
    if (!isGiven(id)) continue
    const kind = answers[textIn(type)]
    if (kind !== undefined) open.set(`${kind.by} ${textIn(id)}`, `${kind.called} ${textIn(id)}`)
    const answered = Object.values(answers).find(({ by }) => by === type)
    if (answered === undefined || open.delete(`${answered.by} ${textIn(id)}`)) continue
    throw badRequest(`No tool call found for ${answered.called} output with call_id ${textIn(id)}.`, 'input')
  }
  for (const call of open.values()) throw badRequest(`No tool output found for ${call}.`, 'input')
}

/** Reasoning must be followed by a message, a call, or more reasoning. */
function checkFollowing(items: readonly Fields[]): void {
  for (const [index, item] of items.entries()) {
    if (item.type !== 'reasoning') continue
    const next = items[index + 1]
    const isFollowed = next?.type === 'reasoning' || next?.role === 'assistant' || textIn(next?.type).endsWith('_call')
    if (isFollowed) continue
    const message = `Item '${textIn(item.id)}' of type 'reasoning' was provided without its required following item.`
    throw badRequest(message, 'input')
  }
}
