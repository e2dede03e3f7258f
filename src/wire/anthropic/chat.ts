import type { ChatCodec, CountCodec } from '../../capabilities/chat.ts'
import { readAsk, readCountAsk } from './ask.ts'
import { writeEvent } from './block-stream.ts'
import { writeStreamError } from './errors.ts'
import { estimateInput } from './estimate.ts'
import { passAnswer } from './pass-answer.ts'
import { passStream } from './pass-stream.ts'
import { readConversation } from './read-conversation.ts'
import { openWriter } from './reply-writer.ts'
import { writeAnswer } from './write-answer.ts'

/** The messages protocol, on the client's side. */
export const anthropicChat: ChatCodec = {
  protocol: 'anthropic',
  readAsk,
  estimateInput,
  writeStreamError,
  keepAlive: new TextEncoder().encode(writeEvent('ping', {})),
  passAnswer,
  passStream,
  readConversation,
  writeAnswer,
  openWriter,
}

/** The count of a prompt, which is asked like a message without its answer. */
export const anthropicCount: CountCodec = {
  readAsk: readCountAsk,
  estimateInput,
  // A count has no cap on the output, and one of 0 is refused.
  checkTranslated: (ask) => void readConversation({ ...ask, outputTokensMax: 1 }),
}
