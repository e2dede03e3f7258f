import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { AssistantBlock, Conversation } from '../../capabilities/conversation.ts'
import { plainAsk, target } from './testing.ts'
import { writeAsk } from './write-ask.ts'

const conversation: Conversation = {
  system: [],
  turns: [{ role: 'user', blocks: [{ kind: 'text', text: 'Hi' }] }],
  tools: [],
  hostedTools: [],
  stop: [],
  verbosity: 'low',
  cacheKey: 'mine',
}

const sent = (takesHints: boolean) => {
  const written = writeAsk(plainAsk, conversation, { ...target, takesHints, namespaced: (label) => `ours-${label}` })
  return JSON.parse(written) as JsonObject
}

test('hints go to vendors that know them, the label of a cache as the account’s own', () => {
  expect(sent(true)).toMatchObject({ verbosity: 'low', prompt_cache_key: 'ours-mine' })
  for (const hint of ['verbosity', 'prompt_cache_key']) expect(sent(false)).not.toHaveProperty(hint)
})

const said = (text: string, isApart?: boolean): AssistantBlock => {
  return { kind: 'text', text, ...(isApart !== undefined && { isApart }) }
}
const call: AssistantBlock = { kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}' }

test.each([
  ['that were cut for a citation are one', [said('Oslo is '), said('cold'), said('.')], 'Oslo is cold.'],
  ['of messages of their own are parted', [said('One.'), said('Two.', true)], 'One.\n\nTwo.'],
  ['around a call are parted', [said('One.'), call, said('Two.')], 'One.\n\nTwo.'],
  ['around a thought are parted', [said('One.'), { kind: 'thinking', text: 'Hm' }, said('Two.')], 'One.\n\nTwo.'],
  ['behind something else begin with nothing', [call, said('One.', true)], 'One.'],
] satisfies [string, AssistantBlock[], string][])('texts of an assistant %s', (_name, blocks, content) => {
  const turns = [...conversation.turns, { role: 'assistant' as const, blocks }]
  const { messages } = JSON.parse(writeAsk(plainAsk, { ...conversation, turns }, target)) as { messages: JsonObject[] }
  expect(messages[1]).toMatchObject({ role: 'assistant', content })
})
