import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { Conversation } from '../../capabilities/conversation.ts'
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
