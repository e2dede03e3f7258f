import { createHash } from 'node:crypto'

const digits = 24

/**
 * An id for a call whose vendor gave none that can be used: the same whenever the same reply is read. Its source names the
 * reply, since clients keep results by ids, and two turns of a conversation must not have the same one.
 */
export function madeCallId(source: string): string {
  return `call_${createHash('sha256').update(source).digest('hex').slice(0, digits)}`
}
