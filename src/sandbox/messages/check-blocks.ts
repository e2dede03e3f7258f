import { type Fields, isGiven, shown } from '../fields.ts'
import { invalid } from './errors.ts'
import type { Version } from './head.ts'
import { checkExtras, checkFlag, checkOneOf, checkPattern, checkTag, fieldsAt, listAt, textAt } from './shape.ts'
import { isOurRedactedThinking, isOurThinking } from './signature.ts'

type Role = 'user' | 'assistant' | 'system'

/** All block types, with the roles that may use them and the fields they take. */
const blocks: Readonly<Record<string, { roles: readonly Role[]; fields: readonly string[] }>> = {
  text: { roles: ['user', 'assistant', 'system'], fields: ['text', 'citations'] },
  image: { roles: ['user'], fields: ['source', 'transformations'] },
  document: { roles: ['user', 'assistant'], fields: ['source', 'title', 'context', 'citations'] },
  search_result: { roles: ['user'], fields: ['source', 'title', 'content', 'citations'] },
  container_upload: { roles: ['user'], fields: ['file_id'] },
  tool_result: { roles: ['user'], fields: ['tool_use_id', 'content', 'is_error', 'toolset_name'] },
  tool_use: { roles: ['assistant'], fields: ['id', 'name', 'input', 'caller', 'toolset_name'] },
  thinking: { roles: ['assistant'], fields: ['thinking', 'signature'] },
  redacted_thinking: { roles: ['assistant'], fields: ['data'] },
  server_tool_use: { roles: ['assistant'], fields: ['id', 'name', 'input', 'caller'] },
  web_search_tool_result: { roles: ['assistant'], fields: ['tool_use_id', 'content', 'caller'] },
  web_fetch_tool_result: { roles: ['assistant'], fields: ['tool_use_id', 'content', 'caller'] },
  code_execution_tool_result: { roles: ['assistant'], fields: ['tool_use_id', 'content'] },
  bash_code_execution_tool_result: { roles: ['assistant'], fields: ['tool_use_id', 'content'] },
  text_editor_code_execution_tool_result: { roles: ['assistant'], fields: ['tool_use_id', 'content'] },
  tool_search_tool_result: { roles: ['assistant'], fields: ['tool_use_id', 'content'] },
}

const blockTypes = Object.keys(blocks)
const resultTypes = ['text', 'image', 'document', 'search_result', 'tool_reference', 'browser_state']
export const thoughtTypes: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking'])

export type Turn = { readonly role: Role; readonly version: Version }

export function checkBlock(place: string, value: unknown, { role, version }: Turn): Fields {
  const block = fieldsAt(place, value)
  checkTag(place, block.type, blockTypes)
  const type = shown(block.type)
  const { roles, fields } = blocks[type] ?? { roles: [], fields: [] }
  const isBarred = type === 'document' && role === 'assistant' && version === '2026-10-21'
  if (!roles.includes(role) || isBarred) {
    throw invalid(place, `\`${type}\` blocks can only be in \`${roles[0] ?? ''}\` messages`)
  }
  // A thinking block must come back unchanged, so nothing inside it may be marked for the cache.
  const cached = thoughtTypes.has(type) ? [] : ['cache_control']
  checkExtras(`${place}.${type}`, block, ['type', ...cached, ...fields])
  checkInside(`${place}.${type}`, place, block)
  if (version === '2026-10-21' && type === 'text' && role === 'user') checkUncited(`${place}.text`, block)
  return block
}

function checkInside(at: string, place: string, block: Fields): void {
  switch (block.type) {
    case 'text':
      return checkText(`${at}.text`, block.text)
    case 'image':
      return checkImage(`${at}.source`, block.source)
    case 'document':
      return checkDocument(`${at}.source`, block.source)
    case 'thinking':
      if (isOurThinking(textAt(`${at}.thinking`, block.thinking), textAt(`${at}.signature`, block.signature))) return
      throw invalid(place, 'Invalid `signature` in `thinking` block')
    case 'redacted_thinking':
      if (isOurRedactedThinking(textAt(`${at}.data`, block.data))) return
      throw invalid(place, 'Invalid `data` in `redacted_thinking` block')
    case 'tool_use':
      checkPattern(`${at}.id`, block.id, idPattern)
      checkPattern(`${at}.name`, block.name, /^[a-zA-Z0-9_-]{1,200}$/)
      fieldsAt(`${at}.input`, block.input)
      return
    case 'server_tool_use':
      checkPattern(`${at}.id`, block.id, /^srvtoolu_[a-zA-Z0-9_]+$/)
      fieldsAt(`${at}.input`, block.input)
      return
    case 'tool_result':
      return checkResult(at, block)
    default:
  }
}

const idPattern = /^[a-zA-Z0-9_-]+$/

export function checkText(place: string, value: unknown): void {
  const text = textAt(place, value)
  if (text === '') throw invalid('messages', 'text content blocks must be non-empty')
  if (text.trim() === '') throw invalid('messages', 'text content blocks must contain non-whitespace text')
}

function checkUncited(at: string, { citations }: Fields): void {
  if (!Array.isArray(citations) || citations.length === 0) return
  throw invalid(`${at}.citations`, 'not permitted in a user message with anthropic-version 2026-10-21')
}

function checkResult(at: string, { tool_use_id: id, content, is_error: isError }: Fields): void {
  checkPattern(`${at}.tool_use_id`, id, idPattern)
  checkFlag(`${at}.is_error`, isError)
  if (!isGiven(content) || typeof content === 'string') return
  for (const [index, part] of listAt(`${at}.content`, content).entries()) {
    const place = `${at}.content.${index}`
    const block = fieldsAt(place, part)
    checkTag(place, block.type, resultTypes)
    checkInside(`${place}.${shown(block.type)}`, place, block)
  }
}

const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

/** How the base64 of each image type begins. The vendor checks the bytes against the label. */
const imageStarts = {
  '/9j/': 'image/jpeg',
  iVBORw0KGgo: 'image/png',
  R0lGOD: 'image/gif',
  UklGR: 'image/webp',
} as const

function checkImage(place: string, value: unknown): void {
  const source = fieldsAt(place, value)
  checkTag(place, source.type, ['base64', 'url', 'file'])
  if (source.type === 'url') return checkUrl(`${place}.url.url`, source.url)
  if (source.type === 'file') return void textAt(`${place}.file.file_id`, source.file_id)
  const at = `${place}.base64`
  checkOneOf(`${at}.media_type`, source.media_type, imageTypes)
  const data = checkBase64(`${at}.data`, source.data)
  const [, actual] = Object.entries(imageStarts).find(([start]) => data.startsWith(start)) ?? []
  if (actual === undefined || actual === source.media_type) return
  const message = `The image was specified using the ${shown(source.media_type)} media type, but the image appears to be a ${actual} image`
  throw invalid(at, message)
}

function checkDocument(place: string, value: unknown): void {
  const source = fieldsAt(place, value)
  checkTag(place, source.type, ['base64', 'content', 'file', 'text', 'url'])
  const at = `${place}.${shown(source.type)}`
  if (source.type === 'url') return checkUrl(`${at}.url`, source.url)
  if (source.type === 'file') return void textAt(`${at}.file_id`, source.file_id)
  if (source.type === 'base64') {
    checkOneOf(`${at}.media_type`, source.media_type, ['application/pdf'])
    checkBase64(`${at}.data`, source.data)
  }
  if (source.type === 'text') {
    checkOneOf(`${at}.media_type`, source.media_type, ['text/plain'])
    textAt(`${at}.data`, source.data)
  }
}

function checkUrl(place: string, value: unknown): void {
  if (/^https:\/\//i.test(textAt(place, value))) return
  throw invalid('', 'Only HTTPS URLs are supported.')
}

function checkBase64(place: string, value: unknown): string {
  const data = textAt(place, value)
  if (data !== '' && /^[A-Za-z0-9+/]+={0,2}$/.test(data)) return data
  throw invalid(place, 'invalid base64 data')
}
