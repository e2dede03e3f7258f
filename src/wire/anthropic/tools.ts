import { badRequest, excerpt, type GatewayError } from '../../base/errors.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { objectIn, placedObjectsIn, textIn } from '../loose.ts'

/**
 * Who runs a tool, and what it costs. `client`: the client, for tokens only. `search`: the vendor, at a price per call.
 * `hosted`: the vendor, for the tokens of what it finds. `unpriced`: the vendor, at a price that is not in the
 * catalogue.
 */
export type ToolKind = 'client' | 'search' | 'hosted' | 'unpriced'

/**
 * Dated tools by family; a new date of a known family keeps its kind. A map, because the names come from clients and a
 * plain object would find inherited ones such as `constructor`.
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

/** An unknown dated family may cost anything, as the vendor's code execution and its advisor do. */
export function kindOf(tool: JsonObject): ToolKind {
  const type = typeOf(tool)
  if (type === '' || type === 'custom') return 'client'
  if (type === 'mcp_toolset') return 'hosted'
  const family = familyOf(type)
  return family === undefined ? 'client' : (families.get(family) ?? 'unpriced')
}

/** `bash` for `bash_20250124`; undefined for a type without a date. */
export function familyOf(type: string): string | undefined {
  return dated.exec(type)?.[1]
}

/** A tool and where the client wrote it. */
export type PlacedTool = { readonly tool: JsonObject; readonly at: string }

/** The tools of a request: those in `tools`, and those that a message in the middle defines. */
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

export function unpriced({ tool, at }: PlacedTool): GatewayError {
  const message = `The tool '${excerpt(typeOf(tool))}' is not supported: it has no price on this model.`
  return badRequest(message, `${at}.type`, 'unsupported_value')
}
