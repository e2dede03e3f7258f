import type { DocumentBlock } from '../capabilities/conversation.ts'

/** A document's title and context, for vendors that have no fields for them. */
export function headingOf({ title, context }: DocumentBlock): string {
  return [title, context].filter((line) => line !== undefined && line !== '').join('\n')
}

export function withHeading(document: DocumentBlock, text: string): string {
  const heading = headingOf(document)
  return heading === '' ? text : `${heading}\n\n${text}`
}
