import type { ChatCodec } from '../../capabilities/chat.ts'
import { readAnswer } from './chat-answer.ts'
import { estimateInput, readAsk } from './chat-ask.ts'
import { openStream } from './chat-stream.ts'
import { writeStreamError } from './errors.ts'

/** Chat completions as the common protocol speaks them, on the client's side. */
export const openaiChat: ChatCodec = {
  protocol: 'openai',
  readAsk,
  estimateInput,
  readAnswer,
  openStream,
  writeStreamError,
}
