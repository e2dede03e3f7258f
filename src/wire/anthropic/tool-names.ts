import type { JsonObject } from '../../base/json.ts'
import { textIn } from '../loose.ts'
import { shortName } from '../short-name.ts'
import { toolsIn } from './tools.ts'

/** Gives the client's name for a tool, by the shortened name that was sent to the vendor. */
export function namesIn(body: JsonObject): (called: string) => string {
  const names = new Map(toolsIn(body).map(({ tool }) => [shortName(textIn(tool['name'])), textIn(tool['name'])]))
  return (called) => names.get(called) ?? called
}
