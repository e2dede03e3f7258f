import { createHash } from 'node:crypto'
import { toolNameCharactersMax } from '../capabilities/conversation.ts'

const digestDigits = 8

/**
 * A tool's name, short enough for every vendor. Anthropic's protocol allows names of up to 128 characters, and a
 * namespace in front makes a name longer too; tools of MCP servers use both. A longer name is cut and gets a digest of
 * the whole, so that names with the same beginning stay distinct.
 */
export function shortName(name: string): string {
  if (name.length <= toolNameCharactersMax) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, digestDigits)
  return `${name.slice(0, toolNameCharactersMax - digestDigits - 1)}_${digest}`
}
