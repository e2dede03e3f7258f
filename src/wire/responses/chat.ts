import type { TranslatedCodec } from '../../capabilities/chat.ts'
import { readAsk } from './ask.ts'
import { estimateInput } from './bounds.ts'
import { writeStreamError } from './errors.ts'
import { readConversation } from './read-conversation.ts'
import { openWriter } from './reply-writer.ts'
import { writeAnswer } from './write-answer.ts'

/** The responses protocol, on the client's side. Vendors are called in the protocols that they all have. */
export const responsesChat: TranslatedCodec = {
  protocol: 'responses',
  readAsk,
  estimateInput,
  writeStreamError,
  readConversation,
  writeAnswer,
  openWriter,
}
