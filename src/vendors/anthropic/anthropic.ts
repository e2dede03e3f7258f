import { GatewayError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { fieldsIn } from '../../wire/answer-body.ts'
import { versionUsual } from '../../wire/anthropic/ask.ts'
import { refuseKeptFiles } from '../../wire/anthropic/kept-files.ts'
import { passAsk } from '../../wire/anthropic/pass-ask.ts'
import { readAnswer } from '../../wire/anthropic/read-answer.ts'
import { openReader } from '../../wire/anthropic/reply-reader.ts'
import { betasOf } from '../../wire/anthropic/unbound-thinking.ts'
import { writeAsk } from '../../wire/anthropic/write-ask.ts'
import { jsonCall } from '../json-call.ts'
import type { Call, CallContext, ChatAdapter, Vendor } from '../vendor.ts'
import { explain } from './explain.ts'

const chat: ChatAdapter = {
  protocol: 'anthropic',
  choicesMax: 1,
  pass: (ask, context) => passTo('/v1/messages', ask, context),
  translate(ask, conversation, context) {
    const body = writeAsk(conversation, { ...context, stream: ask.stream, searchesMax: ask.searchesMax })
    // The newer API version refuses sampling fields, which clients of other protocols send.
    return callTo('/v1/messages', body, context, { 'anthropic-version': versionUsual, ...betasOf(body) })
  },
  readAnswer,
  openReader,
  count: {
    call: (ask, context) => passTo('/v1/messages/count_tokens', ask, context),
    read(body) {
      const tokens = fieldsIn(body)['input_tokens']
      if (typeof tokens === 'number') return tokens
      throw new GatewayError('upstream-failed', "The model's vendor gave no count.")
    },
  },
}

export const anthropic: Vendor = {
  id: 'anthropic',
  baseUrl: 'https://api.anthropic.com',
  callRoots: ['/v1'],
  environment: ['ANTHROPIC_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  chat,
}

function passTo(path: string, ask: ChatAsk, context: CallContext): Call {
  refuseKeptFiles(ask.native)
  return callTo(path, passAsk(ask, context), context, ask.headers)
}

function callTo(path: string, body: string | JsonObject, context: CallContext, headers: Call['headers']): Call {
  return jsonCall(`${context.baseUrl}${path}`, body, context, { ...headers, 'x-api-key': context.credential })
}
