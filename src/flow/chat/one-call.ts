import type { ReplyReader } from '../../capabilities/chat.ts'
import type { Choice, Conversation, Reply, ReplyEvent } from '../../capabilities/conversation.ts'
import type { ChatAdapter } from '../../vendors/vendor.ts'

export type ReplyReaders = Pick<ChatAdapter, 'readAnswer' | 'openReader'>

/**
 * How a vendor's replies are read for one conversation. A client that wants one tool call at a time gets the first one:
 * not every vendor can be told so, and the model calls again for what it still needs.
 */
export function readersFor(chat: ChatAdapter, conversation: Pick<Conversation, 'parallelTools'>): ReplyReaders {
  if (conversation.parallelTools !== false) return chat
  return {
    readAnswer(body) {
      const reply = chat.readAnswer(body)
      return { ...reply, choices: reply.choices.map(withFirstCall) } satisfies Reply
    },
    openReader(): ReplyReader {
      const reader = chat.openReader()
      return { read: (event) => reader.read(event).map(heldBack) }
    },
  }
}

function withFirstCall({ blocks, ...choice }: Choice): Choice {
  const first = blocks.find(({ kind }) => kind === 'tool-call')
  return { ...choice, blocks: blocks.filter((block) => block.kind !== 'tool-call' || block === first) }
}

function heldBack(event: ReplyEvent): ReplyEvent {
  const isLater = (event.kind === 'tool-call-start' || event.kind === 'tool-call-delta') && event.call > 0
  return isLater ? { kind: 'heartbeat' } : event
}
