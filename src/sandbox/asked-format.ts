import type { TextAsk } from './compose-text.ts'
import { parseFields } from './fields.ts'

/**
 * Where a protocol has no field for the format of an answer, the caller asks for it in the instructions, with a schema
 * on the next line. The simulated model obeys.
 */
export function formatAskedIn(instructions: string): TextAsk['format'] {
  const schema = /\bJSON of this schema and nothing else\b.*\n(\{.*\})/i.exec(instructions)?.[1]
  if (schema === undefined) return { type: /\bJSON object and nothing else\b/i.test(instructions) ? 'object' : 'text' }
  const parsed = parseFields(schema)
  return parsed === undefined ? { type: 'object' } : { type: 'schema', schema: parsed }
}
