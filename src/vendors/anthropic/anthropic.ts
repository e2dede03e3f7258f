import { GatewayError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { versionUsual } from '../../wire/anthropic/ask.ts'
import { refuseKeptFiles } from '../../wire/anthropic/kept-files.ts'
import { passAsk } from '../../wire/anthropic/pass-ask.ts'
import { readAnswer } from '../../wire/anthropic/read-answer.ts'
import { openReader } from '../../wire/anthropic/reply-reader.ts'
import { writeAsk } from '../../wire/anthropic/write-ask.ts'
import { parseLoosely } from '../../wire/loose.ts'
import type { Call, CallContext, ChatAdapter, Vendor } from '../vendor.ts'
import { explain } from './explain.ts'

const chat: ChatAdapter = {
  protocol: 'anthropic',
  choicesMax: 1,
  pass: (ask, context) => passTo('/v1/messages', ask, context),
  translate(ask, conversation, context) {
    const target = {
      upstreamModel: context.upstreamModel,
      stream: ask.stream,
      efforts: context.efforts,
      outputTokensMax: context.outputTokensMax,
      searchesMax: ask.searchesMax,
      namespaced: context.namespaced,
    }
    // The newer API version refuses sampling fields, which clients of other protocols send.
    const headers = { 'anthropic-version': versionUsual }
    return callTo('/v1/messages', context, headers, JSON.stringify(writeAsk(conversation, target)))
  },
  readAnswer,
  openReader,
  count: {
    call: (ask, context) => passTo('/v1/messages/count_tokens', ask, context),
    read(body) {
      const counted = parseLoosely(decodeUtf8(body))
      const tokens = isObject(counted) ? counted['input_tokens'] : undefined
      if (typeof tokens === 'number') return tokens
      throw new GatewayError('upstream-failed', "The model's vendor gave no count.")
    },
  },
}

export const anthropic: Vendor = {
  id: 'anthropic',
  baseUrl: 'https://api.anthropic.com',
  environment: ['ANTHROPIC_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  chat,
}

function passTo(path: string, ask: ChatAsk, context: CallContext): Call {
  refuseKeptFiles(ask.native)
  return callTo(path, context, ask.headers, passAsk(ask, context))
}

function callTo(path: string, context: CallContext, headers: Readonly<Record<string, string>>, body: string): Call {
  return {
    url: `${context.baseUrl}${path}`,
    headers: {
      ...headers,
      'x-api-key': context.credential,
      'content-type': 'application/json',
      'x-client-request-id': context.ref,
    },
    body,
  }
}
