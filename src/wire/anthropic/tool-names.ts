import type { JsonObject } from '../../base/json.ts'
import { textIn } from '../loose.ts'
import { shortName } from '../short-name.ts'
import { toolsIn } from './tools.ts'

/** The client's name of a tool, by the one under which the vendor knows it. */
export function namesIn(body: JsonObject): (called: string) => string {
  const names = new Map(toolsIn(body).map(({ tool }) => [shortName(textIn(tool['name'])), textIn(tool['name'])]))
  return (called) => names.get(called) ?? called
}
