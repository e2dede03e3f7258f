import type { ReplyFormat } from '../capabilities/conversation.ts'

const alone = 'and nothing else: no words around it, no code fence.'

/** The form of an answer as an instruction: for vendors with no field for it, or none beside what else is asked. */
export function sayFormat(format: ReplyFormat): string {
  if (format.kind === 'json') return `Answer with one JSON object ${alone}`
  return `Answer with JSON of this schema ${alone}\n${JSON.stringify(format.schema)}`
}
