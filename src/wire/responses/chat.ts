import type { ChatCodec } from '../../capabilities/chat.ts'
import { readAsk } from './ask.ts'
import { writeStreamError } from './errors.ts'
import { estimateInput } from './estimate.ts'
import { replaceLinks } from './links.ts'
import { passAnswer } from './pass-answer.ts'
import { passStream } from './pass-stream.ts'
import { readConversation } from './read-conversation.ts'
import { openWriter } from './reply-writer.ts'
import { writeAnswer } from './write-answer.ts'

/** The responses protocol, on the client's side. */
export const responsesChat: ChatCodec = {
  protocol: 'responses',
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
