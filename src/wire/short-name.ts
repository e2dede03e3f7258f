import { createHash } from 'node:crypto'
import { toolNameCharactersMax } from '../capabilities/conversation.ts'

const digestDigits = 8

/**
 * The name of a tool as every vendor takes it. Anthropic's protocol has names of up to 128 characters, and a namespace before
 * a name makes it longer too; the tools of a client's servers make use of both. A longer one is cut, and told from its like
 * by a digest of the whole.
 */
export function shortName(name: string): string {
  if (name.length <= toolNameCharactersMax) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, digestDigits)
  return `${name.slice(0, toolNameCharactersMax - digestDigits - 1)}_${digest}`
}
