import type { ReplyFormat } from '../capabilities/conversation.ts'

const alone = 'and nothing else: no words around it, no code fence.'

/** The reply's format as an instruction, for a vendor that has no field for it or refuses it beside other fields. */
export function formatInstruction(format: ReplyFormat): string {
  if (format.kind === 'json') return `Answer with one JSON object ${alone}`
  return `Answer with JSON of this schema ${alone}\n${JSON.stringify(format.schema)}`
}
