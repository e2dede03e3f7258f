import type { ChatCodec } from '../../capabilities/chat.ts'
import { passAnswer } from './chat-answer.ts'
import { readAsk } from './chat-ask.ts'
import { passStream } from './chat-stream.ts'
import { writeStreamError } from './errors.ts'
import { estimateInput } from './estimate.ts'
import { replaceLinks } from './links.ts'
import { readConversation } from './read-conversation.ts'
import { openWriter } from './reply-writer.ts'
import { writeAnswer } from './write-answer.ts'

/** Chat completions of the common protocol, on the client's side. */
export const openaiChat: ChatCodec = {
  protocol: 'openai',
  readAsk,
  estimateInput,
  writeStreamError,
  passAnswer,
  passStream,
  replaceLinks,
  readConversation,
  writeAnswer,
  openWriter,
}
