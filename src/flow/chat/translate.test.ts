import { expect, test } from 'bun:test'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { estimateOutput } from './estimate.ts'
import { ReplyFacts } from './translate.ts'

test.each([
  ['a short event counts as one token', 100, ' rivers', 100],
  ['a long event is counted by its length', 4, ' sea'.repeat(100), 396],
  ['characters beyond ASCII are counted by their bytes', 4, '海'.repeat(100), 296],
])('the output of a stream without usage is estimated: %s', (_what, events, text, tokens) => {
  const facts = new ReplyFacts()
  const said: ReplyEvent = { kind: 'text-delta', choice: 0, text }
  facts.note(Array.from({ length: events }, () => said))
  expect(estimateOutput(facts)).toBe(tokens)
})
