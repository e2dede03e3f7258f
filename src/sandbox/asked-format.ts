import type { TextAsk } from './compose-text.ts'

/** Who has no field for the form of an answer says it in words, with a schema on the next line; a model does as it is told. */
export function formatAskedIn(instructions: string): TextAsk['format'] {
  const schema = /\bJSON of this schema and nothing else\b.*\n(\{.*\})/i.exec(instructions)?.[1]
  if (schema !== undefined) return formatBy(schema)
  return { type: /\bJSON object and nothing else\b/i.test(instructions) ? 'object' : 'text' }
}

function formatBy(schema: string): TextAsk['format'] {
  try {
    return { type: 'schema', schema: JSON.parse(schema) as unknown }
  } catch {
    return { type: 'object' }
  }
}
