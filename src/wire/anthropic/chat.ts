import type { ChatCodec, CountCodec } from '../../capabilities/chat.ts'
import { readAsk, readCountAsk } from './ask.ts'
import { writeStreamError } from './errors.ts'
import { estimateInput } from './estimate.ts'
import { replaceLinks } from './links.ts'
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
  passAnswer,
  passStream,
  replaceLinks,
  readConversation,
  writeAnswer,
  openWriter,
}

/** Counting a prompt: the request is a message request without its output fields. */
export const anthropicCount: CountCodec = {
  readAsk: readCountAsk,
  estimateInput,
  replaceLinks,
  // A count has no output limit, but reading a conversation refuses a limit of 0.
  checkTranslated: (ask) => void readConversation({ ...ask, outputTokensMax: 1 }),
}
