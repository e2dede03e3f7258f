import { badRequest, excerpt, type GatewayError } from '../../base/errors.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { objectIn, placedObjectsIn, textIn } from '../loose.ts'

/**
 * Who runs a tool, and what it costs. `client`: the client, for nothing but tokens. `search`: the vendor, at a price a
 * call. `hosted`: the vendor, for the tokens of what it finds. `unpriced`: the vendor, at a price we do not have.
 */
export type ToolKind = 'client' | 'search' | 'hosted' | 'unpriced'

/**
 * Dated tools by family; a new date of a known family is still that family. A map, since clients name the families: an
 * object has a `constructor` that nobody put there.
 */
const families: ReadonlyMap<string, ToolKind> = new Map([
  ['bash', 'client'],
  ['text_editor', 'client'],
  ['memory', 'client'],
  ['computer', 'client'],
  ['browser', 'client'],
  ['computer_toolset', 'client'],
  ['browser_toolset', 'client'],
  ['tool_search_tool_regex', 'client'],
  ['tool_search_tool_bm25', 'client'],
  ['web_search', 'search'],
  ['web_fetch', 'hosted'],
])

const dated = /^(.+)_\d{8}$/

/** A dated family that nobody has heard of may cost anything: the vendor's code runner and its advisor do. */
export function kindOf(type: string): ToolKind {
  if (type === '' || type === 'custom') return 'client'
  if (type === 'mcp_toolset') return 'hosted'
  const family = familyOf(type)
  return family === undefined ? 'client' : (families.get(family) ?? 'unpriced')
}

/** `bash` of `bash_20250124`; undefined for what carries no date. */
export function familyOf(type: string): string | undefined {
  return dated.exec(type)?.[1]
}

/** A tool and where the client wrote it. */
export type PlacedTool = { readonly tool: JsonObject; readonly at: string }

/** The tools of a request: those offered from the start, and those that a turn in the middle brings in by value. */
export function toolsIn(body: JsonObject): readonly PlacedTool[] {
  const placed = placedObjectsIn(body['tools']).map(([index, tool]) => ({ tool, at: `tools[${index}]` }))
  for (const [turn, message] of placedObjectsIn(body['messages'])) {
    for (const [index, block] of placedObjectsIn(message['content'])) {
      if (block['type'] !== 'tool_addition') continue
      const { definition } = objectIn(block['tool'])
      if (!isObject(definition)) continue
      placed.push({ tool: definition, at: `messages[${turn}].content[${index}].tool.definition` })
    }
  }
  return placed
}

export function typeOf(tool: JsonObject): string {
  return textIn(tool['type'])
}

export function unpriced(type: string, at: string): GatewayError {
  const message = `The tool '${excerpt(type)}' is not supported: it has no price on this model.`
  return badRequest(message, `${at}.type`, 'unsupported_value')
}
