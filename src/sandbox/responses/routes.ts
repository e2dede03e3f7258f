import type { Protocol } from '../protocol.ts'
import { answerResponse } from './respond.ts'

/**
 * OpenAI's newer protocol, in which an answer is a list of items. The simulator stores no answers to be fetched later.
 */
export const responsesProtocol: Protocol = (_vendor, root, world) => [
  { method: 'POST', path: `${root}/responses`, answer: (call) => answerResponse(call, world) },
]
