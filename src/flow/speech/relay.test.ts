import { expect, test } from 'bun:test'
import { scriptedExchange } from '../../../test/support/scripted-exchange.ts'
import { SpeechRelay } from './relay.ts'

const reader = () => ({
  form: {},
  ended: true,
  usage: undefined,
  refusal: undefined,
  read: (bytes: Uint8Array) => bytes,
})

test('a reader without room is given no more, and the next piece is not asked for', async () => {
  let calls = 0
  const routed = {
    signal: new AbortController().signal,
    attemptId: 'att_1',
    principal: { accountId: 'acc_1' },
    model: {},
    ask: { stream: true, model: 'm' },
    funds: { sending() {} },
    elapsedMs: () => 0,
    route: { channel: { id: 'c', vendor: { id: 'v' }, baseUrl: '' }, credential: '', upstreamModel: 'm' },
  }
  const transport = {
    send: async () => {
      calls++
      return { kind: 'response', exchange: scriptedExchange(200, ['aa', 'bb']) }
    },
  }
  const parts = { transport, timeouts: { stream: {}, whole: {} }, tenantLabel: String }
  const speaking = {
    ask: { pieces: ['one', 'two', 'three'], asEvents: false, soldBy: 'character' },
    codec: {},
    adapter: { say: () => ({ call: {}, openReader: reader }) },
    shaper: { push: async (bytes: Uint8Array) => bytes, end: async () => new Uint8Array(), endPiece() {}, close() {} },
  }
  const relay = new SpeechRelay(parts as never, routed as never, speaking as never)
  expect(await relay.start()).toBeUndefined()
  const heard: string[] = []
  const ended = Promise.withResolvers<void>()
  const outlet = (room: number) => ({
    take(bytes: Uint8Array) {
      heard.push(Buffer.from(bytes).toString())
      if (--room === 0) relay.hold()
    },
    end: () => ended.resolve(),
  })
  relay.pour(outlet(2))
  await Bun.sleep(5)
  expect([heard, calls]).toEqual([['aa', 'bb'], 1])
  relay.pour(outlet(99))
  await ended.promise
  expect([heard.length, calls]).toEqual([6, 3])
})
