import { type Fields, fieldsIn, isFields, itemsIn, shown, textIn } from '../fields.ts'
import { checkBlock, checkText, thoughtTypes, type Turn } from './check-blocks.ts'
import { invalid } from './errors.ts'
import type { Head } from './head.ts'
import { checkExtras, checkOneOf, fieldsAt, listAt } from './shape.ts'

/** A message whose content is a list of blocks, whether it was sent as a string or as blocks. */
export type Message = { readonly role: Turn['role']; readonly blocks: readonly Fields[] }

export function checkSystem(system: unknown): readonly Fields[] {
  if (system === undefined || system === null || system === '') return []
  if (typeof system === 'string') return [{ type: 'text', text: system }]
  return listAt('system', system).map((value, index) => {
    const block = fieldsAt(`system.${index}`, value)
    if (block.type !== 'text') throw invalid(`system.${index}.type`, "Input should be 'text'")
    if (block.text === '') throw invalid('system', 'text content blocks must be non-empty')
    checkExtras(`system.${index}`, block, ['type', 'text', 'cache_control', 'citations'])
    return block
  })
}

/** The vendor's rules on `messages`: shapes, order, and that the next message answers every tool call. */
export function checkMessages(value: unknown, head: Head): readonly Message[] {
  const list = listAt('messages', value)
  if (list.length === 0) throw invalid('messages', 'at least one message is required')
  const messages = list.map((message, index) => readMessage(message, index, index === list.length - 1, head))
  const first = messages[0]?.role
  if (first === 'system') {
    throw invalid('messages.0', 'use the top-level `system` parameter for the initial system prompt')
  }
  if (first !== 'user') throw invalid('messages', 'first message must use the "user" role')
  checkCalls(messages)
  checkEnding(messages.at(-1))
  return messages
}

function readMessage(value: unknown, index: number, isLast: boolean, head: Head): Message {
  const place = `messages.${index}`
  const message = fieldsAt(place, value)
  const { role, content } = message
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    const message = `Unexpected role "${shown(role)}". Allowed roles are "user", "assistant" or "system".`
    throw invalid('messages', message)
  }
  const isControl = role === 'system' && head.betas.has('per-turn-control') && message.output_config !== undefined
  checkExtras(place, message, ['role', 'content', ...(isControl ? ['output_config'] : [])])
  if (isControl) checkControl(`${place}.output_config`, message.output_config)
  const mayBeEmpty = isControl || (isLast && role === 'assistant')
  if (content === '' || (Array.isArray(content) && content.length === 0)) {
    if (mayBeEmpty) return { role, blocks: [] }
    throw invalid(place, 'all messages must have non-empty content except for the optional final assistant message')
  }
  if (typeof content === 'string') {
    checkText(`${place}.content`, content)
    return { role, blocks: [{ type: 'text', text: content }] }
  }
  const { version } = head
  const blocks = listAt(`${place}.content`, content)
  return { role, blocks: blocks.map((block, at) => checkBlock(`${place}.content.${at}`, block, { role, version })) }
}

/** From this message on, another effort than that of the request. The vendor's command-line tool sends it. */
function checkControl(place: string, value: unknown): void {
  const config = fieldsAt(place, value)
  checkExtras(place, config, ['effort', 'timing'])
  if (config.effort !== undefined)
    checkOneOf(`${place}.effort`, config.effort, ['low', 'medium', 'high', 'xhigh', 'max'])
}

/**
 * Newer models take instructions in the middle: after a message of the user, and before one of the model or at the end.
 */
export function checkAsides(messages: readonly Message[], mayStand: boolean): void {
  for (const [index, { role }] of messages.entries()) {
    if (role !== 'system') continue
    if (!mayStand) throw invalid('', "role 'system' is not supported on this model")
    const place = `messages.${index}`
    const [before, after] = [messages[index - 1], messages[index + 1]]
    const isHosted = before?.role === 'assistant' && textIn(before.blocks.at(-1)?.type).endsWith('_tool_result')
    if (before?.role !== 'user' && !isHosted) {
      const message =
        "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result"
      throw invalid(place, message)
    }
    if (after !== undefined && after.role !== 'assistant') {
      throw invalid(place, "role 'system' must precede an 'assistant' message or end the array")
    }
  }
}

/** The message right after a call must answer all its calls, before any text, and may answer no others. */
function checkCalls(messages: readonly Message[]): void {
  let open = new Set<string>()
  const seen = new Set<string>()
  for (const [index, { role, blocks }] of messages.entries()) {
    if (role === 'user') checkResults(blocks, index, open)
    else if (open.size > 0) throw unanswered(index - 1, open)
    open = new Set()
    for (const { type, id } of blocks) {
      if (type !== 'tool_use') continue
      if (seen.has(textIn(id))) throw invalid('messages', '`tool_use` ids must be unique')
      seen.add(textIn(id))
      open.add(textIn(id))
    }
  }
  if (open.size > 0) throw unanswered(messages.length - 1, open)
}

function checkResults(blocks: readonly Fields[], index: number, open: ReadonlySet<string>): void {
  const left = new Set(open)
  const leading = blocks.findIndex(({ type }) => type !== 'tool_result')
  for (const [at, { type, tool_use_id: wanted }] of blocks.entries()) {
    if (type !== 'tool_result') continue
    const id = textIn(wanted)
    const place = `messages.${index}.content.${at}`
    if (!open.has(id)) {
      const message = `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
      throw invalid(place, message)
    }
    // A result that comes after text does not count.
    if (leading >= 0 && at > leading) continue
    if (!left.delete(id)) {
      const message = `each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`
      throw invalid(place, message)
    }
  }
  if (left.size > 0) throw unanswered(index - 1, left)
}

function unanswered(index: number, ids: ReadonlySet<string>): Error {
  const message = `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${[...ids].join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
  return invalid(`messages.${index}`, message)
}

function checkEnding(last: Message | undefined): void {
  const text = last?.role === 'assistant' ? textIn(last.blocks.at(-1)?.text) : ''
  if (/\s$/.test(text)) throw invalid('messages', 'final assistant content cannot end with trailing whitespace')
}

/** With `thinking: enabled`, a tool loop may only continue from the thinking block that began it. */
export function checkThoughts(messages: readonly Message[], thinking: unknown): void {
  if (fieldsIn(thinking).type !== 'enabled') return
  const index = messages.findLastIndex(({ role }) => role === 'assistant')
  const blocks = messages[index]?.blocks ?? []
  const isOpen = index === messages.length - 1 || blocks.some(({ type }) => type === 'tool_use')
  const [first] = blocks
  if (!isOpen || !first || thoughtTypes.has(first.type)) return
  const message = `Expected \`thinking\` or \`redacted_thinking\`, but found \`${textIn(first.type)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`.`
  throw invalid(`messages.${index}.content.0.type`, message)
}

/** Models without prefill refuse to continue a text that the client began, but continue a server tool's paused turn. */
export function checkPrefill(messages: readonly Message[], mayPrefill: boolean): void {
  const last = messages.at(-1)
  const type = last?.blocks.at(-1)?.type
  if (mayPrefill || last?.role !== 'assistant' || (type !== 'text' && type !== undefined)) return
  const message =
    'This model does not support assistant message prefill. The conversation must end with a user message.'
  throw invalid('', message)
}

/** All text in the blocks, without the results of tools. */
export function textOf(blocks: readonly Fields[]): string {
  return blocks.flatMap(({ type, text }) => (type === 'text' ? [textIn(text)] : [])).join('\n')
}

/** The contents of a tool's result as blocks. */
export function resultBlocks({ content }: Fields): readonly Fields[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return itemsIn(content).filter(isFields)
}
