import { type Fields, fieldsIn, textIn } from '../fields.ts'

const citedCharacters = 40

/** Cites the beginning of each document: characters of a text, the first page of anything else. */
export function citeDocuments(documents: readonly Fields[]): readonly unknown[] {
  return documents.map(({ source, title }, index) => {
    const place = { document_index: index, document_title: textIn(title) || null, file_id: null }
    const { type, data } = fieldsIn(source)
    if (type !== 'text') {
      return {
        type: 'page_location',
        cited_text: 'The first page.',
        ...place,
        start_page_number: 1,
        end_page_number: 2,
      }
    }
    const cited = textIn(data).slice(0, citedCharacters).toWellFormed()
    return {
      type: 'char_location',
      cited_text: cited,
      ...place,
      start_char_index: 0,
      end_char_index: cited.length,
    }
  })
}
