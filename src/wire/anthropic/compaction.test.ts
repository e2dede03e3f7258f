import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { readConversation } from './read-conversation.ts'
import { askOf } from './testing.ts'

const user = { role: 'user', content: 'Where were we?' }
const read = (fields: JsonObject) => readConversation(askOf({ messages: [user], ...fields }))
const said = (text: string) => ({ kind: 'text' as const, text })

describe('compaction of a conversation', () => {
  test('the compaction field is refused in translation, and null counts as absent', () => {
    expect(() => read({ compaction: { type: 'summarize' } })).toThrow("'compaction' is not supported")
    expect(read({ compaction: null })).toEqual(read({}))
  })

  test('a compaction block becomes assistant text, and one without content is dropped', () => {
    const summary = { type: 'compaction', content: 'They spoke of Oslo.', signature: 'c2ln' }
    const failed = { type: 'compaction', content: null }
    expect(read({ messages: [{ role: 'assistant', content: [summary, failed] }, user] }).turns).toEqual([
      { role: 'assistant', blocks: [said('They spoke of Oslo.')] },
      { role: 'user', blocks: [said('Where were we?')] },
    ])
  })

  test('the text of a compaction block is set apart from the text before and after it', () => {
    const text = { type: 'text', text: 'Oslo has fjords.' }
    const summary = { type: 'compaction', content: 'They spoke of Oslo.' }
    const content = [text, summary, text, text]
    expect(read({ messages: [{ role: 'assistant', content }, user] }).turns[0]?.blocks).toEqual([
      said('Oslo has fjords.'),
      { ...said('They spoke of Oslo.'), isApart: true },
      { ...said('Oslo has fjords.'), isApart: true },
      said('Oslo has fjords.'),
    ])
  })
})
