import { expect, test } from 'bun:test'
import { messageOf } from '../base/errors.ts'
import type { Conversation } from '../capabilities/conversation.ts'
import { plainModel } from '../capabilities/testing.ts'
import { openaiChat } from '../wire/openai/chat.ts'
import { vendors } from './index.ts'
import { plainContext } from './testing.ts'
import type { CallContext, ChatAdapter } from './vendor.ts'

const schema = { type: 'object', properties: {} }
const tool = { name: 'look', schema }

const plain: Conversation = {
  system: [],
  turns: [{ role: 'user', blocks: [{ kind: 'text', text: 'Hi' }] }],
  tools: [tool],
  hostedTools: [],
  stop: [],
}

/** Another value of each field than that of the plain conversation. */
const others: Required<Omit<Conversation, 'turns'>> = {
  system: [{ kind: 'text', text: 'Be brief.' }],
  tools: [],
  hostedTools: [{ kind: 'web-search' }],
  toolChoice: 'required',
  parallelTools: false,
  outputTokensMax: 7,
  temperature: 0.5,
  topP: 0.5,
  topK: 5,
  stop: ['.'],
  seed: 5,
  presencePenalty: 0.5,
  frequencyPenalty: 0.5,
  logprobs: 2,
  format: { kind: 'schema', schema },
  thinking: { effort: 'high', isShown: true },
  showsOwnThinking: true,
  verbosity: 'low',
  user: 'someone',
  cacheKey: 'some',
}

const body = { model: 'ours', messages: [{ role: 'user', content: 'Hi' }] }
const asked = { body, files: [], bodyBytes: 100, header: () => null }
const ask = { ...openaiChat.readAsk(asked, () => ({ ...plainModel, id: 'ours' })), searchesMax: 5 }

const chats = ['openai', 'anthropic', 'google'].flatMap((id): ChatAdapter[] => {
  const chat = vendors.get(id)?.chat
  return chat === undefined ? [] : [chat, ...(chat.secondProtocol === undefined ? [] : [chat.secondProtocol.chat])]
})
const contexts = [plainContext, { ...plainContext, reasoning: true, efforts: ['low', 'medium', 'high'] }]

/** What each protocol is sent for a conversation, with reasoning and without, or why it is refused. */
function writtenFor(conversation: Conversation): string[] {
  return chats.flatMap((chat) => contexts.map((context) => write(chat, conversation, context)))
}

function write(chat: ChatAdapter, conversation: Conversation, context: CallContext): string {
  try {
    return JSON.stringify(chat.translate(ask, conversation, context).body)
  } catch (thrown) {
    return messageOf(thrown)
  }
}

test.each(Object.entries(others))('the field %s of a conversation has an effect in some protocol', (field, value) => {
  expect(writtenFor({ ...plain, [field]: value })).not.toEqual(writtenFor(plain))
})
