import { expect, test } from 'bun:test'
import { scriptedExchange } from '../../../test/support/scripted-exchange.ts'
import { systemClock } from '../../base/clock.ts'
import { GatewayError } from '../../base/errors.ts'
import { silentLog } from '../../base/log.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ChatCodec } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { makeChannels } from '../../upstream/channels.ts'
import { compatible } from '../../vendors/compatible/compatible.ts'
import { anthropicChat } from '../../wire/anthropic/chat.ts'
import { openaiChat } from '../../wire/openai/chat.ts'
import { responsesChat } from '../../wire/responses/chat.ts'
import { chatJob } from './chat.ts'

const answered = JSON.stringify({ choices: [{ message: { content: 'the words' }, finish_reason: 'stop' }] })
const messages = [{ role: 'user', content: 'Hi' }]

test.each<[string, ChatCodec, JsonObject, string]>([
  ['chat', openaiChat, { messages }, 'data: {"error"'],
  ['messages', anthropicChat, { messages, max_tokens: 9 }, 'event: error\n'],
  [
    'responses',
    responsesChat,
    { input: 'Hi' },
    'event: response.failed\ndata: {"type":"response.failed","sequence_number":0,',
  ],
])(
  'an error in place of a whole answer has none of it, and begins the stream of %s',
  async (_name, codec, body, begin) => {
    const asked = { body: { model: 'm', stream: true, ...body }, files: [], bodyBytes: 100, header: () => null }
    const errand = chatJob(codec).read(asked, () => plainModel as never)
    const channels = makeChannels([], systemClock, () => 0)
    const parts = {
      transport: { send: async () => ({ kind: 'response', exchange: scriptedExchange(200, [answered]) }) },
      timeouts: { stream: { totalMs: 1_000 } },
      tenantLabel: String,
      channels: () => channels,
      log: silentLog,
    }
    const routed = {
      errand,
      ask: errand.ask,
      requestId: 'req_1',
      attemptId: 'att_1',
      receivedAt: 0,
      principal: { accountId: 'acc_1' },
      model: { ...plainModel, prices: { rates: {} } },
      markVendorCalled() {},
      funds: { sending() {} },
      elapsedMs: () => 0,
      route: {
        channel: { id: 'c', vendor: compatible({ id: 'v', baseUrl: 'https://v' }), baseUrl: 'https://v' },
        credential: 'k',
        upstreamModel: 'm',
      },
    }
    const outcome = await errand.call(parts as never, routed as never)
    if (outcome.kind !== 'streaming') throw new Error('it is no stream')
    expect(Buffer.from(outcome.relay.closing()).toString()).toContain('the words')
    const error = errand.writeStreamError?.(new GatewayError('overloaded', 'The answer could not be billed.'))
    expect(Buffer.from(error ?? []).toString()).toStartWith(begin)
    expect(Buffer.from(error ?? []).toString()).not.toContain('the words')
  },
)
