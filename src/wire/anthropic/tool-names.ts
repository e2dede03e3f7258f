import { createHash } from 'node:crypto'
import type { JsonObject } from '../../base/json.ts'
import { toolNameCharactersMax } from '../../capabilities/conversation.ts'
import { textIn } from '../loose.ts'
import { toolsIn } from './tools.ts'

const digestDigits = 8

/**
 * This protocol has names of up to 128 characters, which the tools of a client's servers make use of; no other vendor takes
 * so many. There a longer one is cut, and told from its like by a digest of the whole.
 */
export function neutralName(name: string): string {
  if (name.length <= toolNameCharactersMax) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, digestDigits)
  return `${name.slice(0, toolNameCharactersMax - digestDigits - 1)}_${digest}`
}

/** The client's name of a tool, by the one under which the vendor knows it. */
export function namesIn(body: JsonObject): (called: string) => string {
  const names = new Map(toolsIn(body).map(({ tool }) => [neutralName(textIn(tool['name'])), textIn(tool['name'])]))
  return (called) => names.get(called) ?? called
}
