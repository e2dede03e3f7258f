import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { MediaLink } from '../../capabilities/conversation.ts'
import { replaceLinks } from './links.ts'
import { askOf } from './testing.ts'

const url = 'https://example.com/a'
const linked = { type: 'url', url }
const kept = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }

/** The links that are found in one block of a message, and the block with all of them replaced. */
function replacedIn(block: JsonObject) {
  const found: MediaLink[] = []
  const replaced = replaceLinks(askOf({ messages: [{ role: 'user', content: [block] }] }), (one) => {
    found.push(one)
    return 'data:application/pdf;base64,AAAA'
  })
  return { found, messages: replaced.native['messages'] }
}

test.each([
  [(source: JsonObject) => ({ type: 'image', source, cache_control: { type: 'ephemeral' } }), 'image', ''],
  [(source: JsonObject) => ({ type: 'document', source, title: 'A' }), 'document', ''],
  [
    (source: JsonObject) => ({ type: 'tool_result', tool_use_id: 'a', content: ['text', { type: 'image', source }] }),
    'image',
    '.content[1]',
  ],
  [
    (source: JsonObject) => ({
      type: 'document',
      title: 'A',
      source: { type: 'content', content: [{ type: 'image', source }] },
    }),
    'image',
    '.source.content[0]',
  ],
] as const)(
  'a link is replaced wherever a block may hold one, and what stands beside it stays: %#',
  (of, kind, place) => {
    const { found, messages } = replacedIn(of(linked))
    expect(found).toEqual([{ kind, url, at: `messages[0].content[0]${place}` }])
    expect(messages).toEqual([{ role: 'user', content: [of(kept)] }])
  },
)

test.each([
  { type: 'text', text: url },
  { type: 'image', source: kept },
  { type: 'search_result', source: url, title: 'A', content: [] },
])('a block without a link stays as it is: %j', (block) => {
  expect(replacedIn(block)).toEqual({ found: [], messages: [{ role: 'user', content: [block] }] })
})
