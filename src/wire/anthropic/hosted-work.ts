import type { JsonObject } from '../../base/json.ts'
import type { HostedWork } from '../../capabilities/chat.ts'
import { textIn } from '../loose.ts'

/**
 * What a block that begins says of the vendor's own tools. The vendor counts them at the end of its stream: this is for a
 * stream that does not come to its end, since the searches were made and are charged. `bytes`: what the block takes.
 */
export function hostedWorkOf(block: JsonObject, bytes: number): HostedWork {
  const type = textIn(block['type'])
  return {
    searches: type === 'server_tool_use' && block['name'] === 'web_search' ? 1 : 0,
    foundBytes: type.endsWith('_tool_result') ? bytes : 0,
  }
}
