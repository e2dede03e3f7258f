import { excerpt, type GatewayError } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { explainValues, invalid } from '../issues.ts'
import { objectIn, placedObjectsIn, textIn } from '../loose.ts'

type Place = 'user' | 'assistant' | 'system' | 'result' | 'document' | 'search'

/** The block types that each place may hold when a vendor of another protocol is called. */
const understood: Readonly<Record<Place, readonly string[]>> = {
  user: ['text', 'image', 'document', 'search_result', 'tool_result'],
  assistant: ['text', 'thinking', 'redacted_thinking', 'tool_use', 'compaction'],
  system: ['text'],
  result: ['text', 'image', 'document', 'search_result', 'tool_reference'],
  document: ['text', 'image'],
  search: ['text'],
}

/**
 * Further types that each place may hold: they are read elsewhere, refused elsewhere with a better message, or left out
 * on purpose because they only tell the vendor what its own tools and servers did.
 */
const tolerated: Readonly<Record<Place, ReadonlySet<string>>> = {
  user: new Set(['tool_reference', 'container_upload', 'tool_addition', 'tool_removal']),
  assistant: new Set(['server_tool_use', 'mcp_tool_use', 'mcp_tool_listing', 'container_upload', 'fallback']),
  system: new Set(['tool_addition', 'tool_removal']),
  result: new Set(['browser_state']),
  document: new Set(),
  search: new Set(),
}

/** The vendor adds a result type for each of its hosted tools, all with this ending. */
const hostedResult = /_tool_result$/

/** Refuses unknown block types: such a block would be missing from the prompt and change the answer unnoticed. */
export function refuseUnknownBlocks(body: JsonObject): void {
  for (const [index, { role, content }] of placedObjectsIn(body['messages'])) {
    const place = role === 'assistant' || role === 'system' ? role : 'user'
    refuseIn(place, content, `messages[${index}].content`)
  }
}

function refuseIn(place: Place, content: Json | undefined, at: string): void {
  for (const [index, block] of placedObjectsIn(content)) {
    const type = textIn(block['type'])
    const where = `${at}[${index}]`
    if (!isKnown(place, type)) throw unknown(place, type, `${where}.type`)
    if (type === 'tool_result') refuseIn('result', block['content'], `${where}.content`)
    else if (type === 'search_result') refuseIn('search', block['content'], `${where}.content`)
    else if (type === 'document') refuseIn('document', objectIn(block['source'])['content'], `${where}.source.content`)
  }
}

function isKnown(place: Place, type: string): boolean {
  if (understood[place].includes(type) || tolerated[place].has(type)) return true
  return place === 'assistant' && hostedResult.test(type)
}

function unknown(place: Place, type: string, at: string): GatewayError {
  const expected = explainValues(understood[place].map((known) => `'${known}'`))
  return invalid(at, `${expected}, received '${excerpt(type)}'`)
}
