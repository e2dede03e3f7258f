import type { Json, JsonObject } from '../../base/json.ts'
import type { Citation } from '../../capabilities/conversation.ts'
import { objectsIn, textIn } from '../loose.ts'

/** The sources of statements: web pages have a URL, documents of the prompt a title. */
export function readCitations(citations: Json | undefined): readonly Citation[] {
  return objectsIn(citations).map(readCitation)
}

export function readCitation(citation: JsonObject): Citation {
  const url = textIn(citation['url']) || textIn(citation['source'])
  const title = textIn(citation['title']) || textIn(citation['document_title'])
  const citedText = textIn(citation['cited_text'])
  return { ...(url !== '' && { url }), ...(title !== '' && { title }), ...(citedText !== '' && { citedText }) }
}

/** Positions inside a document are not known here, so the citation points to its beginning. */
export function writeCitation({ url, title, citedText = '' }: Citation): JsonObject {
  if (url !== undefined) {
    return {
      type: 'web_search_result_location',
      url,
      title: title ?? null,
      cited_text: citedText,
      encrypted_index: '',
    }
  }
  return {
    type: 'char_location',
    cited_text: citedText,
    document_index: 0,
    document_title: title ?? null,
    start_char_index: 0,
    end_char_index: citedText.length,
    file_id: null,
  }
}
