import type { JsonObject } from '../../base/json.ts'
import type { HostedWork } from '../../capabilities/chat.ts'
import { textIn } from '../loose.ts'

/**
 * What the start of a block shows of hosted tools. The vendor counts them at the end of its stream; this count serves a
 * stream that is cut before, since its searches were made and are charged. `bytes` is the size of the block.
 */
export function hostedWorkOf(block: JsonObject, bytes: number): HostedWork {
  const type = textIn(block['type'])
  return {
    searches: type === 'server_tool_use' && block['name'] === 'web_search' ? 1 : 0,
    foundBytes: type.endsWith('_tool_result') ? bytes : 0,
  }
}
