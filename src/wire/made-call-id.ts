import { createHash } from 'node:crypto'

const digits = 24

/**
 * An id for a call whose vendor gave no usable one; reading the same reply again gives the same id. The source must
 * identify the reply, because clients match results by id and two turns of a conversation must not share one.
 */
export function madeCallId(source: string): string {
  return `call_${createHash('sha256').update(source).digest('hex').slice(0, digits)}`
}
