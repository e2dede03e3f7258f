import { shorten } from '../prose.ts'
import { seededId } from '../seeded.ts'

export type WebResult = {
  readonly type: 'web_search_result'
  readonly url: string
  readonly title: string
  readonly encrypted_content: string
  readonly page_age: string
}

const resultsPerSearch = 2

/** The results of a web search: pages that do not exist, the same for the same question. */
export function searchWeb(question: string, domain: string, seed: number): readonly WebResult[] {
  return Array.from({ length: resultsPerSearch }, (_, index) => ({
    type: 'web_search_result' as const,
    url: `https://${domain}/road/${index + 1}`,
    title: `Road ${index + 1}: ${shorten(question)}`,
    encrypted_content: seededId('Eo', seed + index),
    page_age: 'January 2, 2026',
  }))
}

export function citeWeb({ url, title }: WebResult, seed: number): unknown {
  return {
    type: 'web_search_result_location',
    url,
    title,
    encrypted_index: seededId('Ep', seed),
    cited_text: `The road of ${title}`,
  }
}
