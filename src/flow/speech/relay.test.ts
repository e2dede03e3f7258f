import { expect, test } from 'bun:test'
import { until } from '../../../test/support/gateway.ts'
import { scriptedExchange } from '../../../test/support/scripted-exchange.ts'
import { systemClock } from '../../base/clock.ts'
import { GatewayError } from '../../base/errors.ts'
import { abortSignalOf } from '../../base/http/client-signal.ts'
import { makeChannels } from '../../upstream/channels.ts'
import type { Exchange, Sent, Transport } from '../../upstream/transport.ts'
import { SpeechRelay } from './relay.ts'

const reader = () => ({
  form: {},
  ended: true,
  usage: undefined,
  refusal: undefined,
  read: (bytes: Uint8Array) => bytes,
})

const audio = (): Sent => ({ kind: 'response', exchange: scriptedExchange(200, ['aa', 'bb']) })

/** Three pieces, the first of which has begun. `answers`: what the vendor does at each call; audio by default. */
async function speaking(
  answers: readonly ((signal: AbortSignal) => Sent | Promise<Sent>)[] = [],
  push = async (bytes: Uint8Array) => bytes,
) {
  const signals: AbortSignal[] = []
  const heard: string[] = []
  const sent: string[] = []
  const routed = {
    markVendorCalled() {},
    signal: new AbortController().signal,
    attemptId: 'att_1',
    principal: { accountId: 'acc_1' },
    model: {},
    ask: { stream: true, model: 'm' },
    funds: { sending: ({ id }: { id: string }) => void sent.push(id) },
    elapsedMs: () => 0,
    route: { channel: { id: 'c', vendor: { id: 'v' }, baseUrl: '' }, credential: '', upstreamModel: 'm' },
  }
  const send: Transport['send'] = async (_call, _timeouts, given) => {
    const signal = abortSignalOf(given)
    signals.push(signal)
    return (answers[signals.length - 1] ?? audio)(signal)
  }
  const { signal: stopping } = new AbortController()
  const channels = makeChannels([], systemClock, () => 0)
  const timeouts = { stream: {}, whole: {} }
  const parts = { transport: { send }, channels: () => channels, timeouts, tenantLabel: String, stopping }
  const relay = new SpeechRelay(
    parts as never,
    routed as never,
    {
      ask: { pieces: ['one', 'two', 'three'], asEvents: false, soldBy: 'character' },
      codec: {},
      adapter: { say: () => ({ call: {}, openReader: reader }) },
      converter: { push, end: async () => new Uint8Array(), endPiece() {}, close() {} },
    } as never,
  )
  expect(await relay.start()).toBeUndefined()
  const ended = Promise.withResolvers<GatewayError | undefined>()
  const outlet = (room: number) => ({
    take(bytes: Uint8Array) {
      heard.push(Buffer.from(bytes).toString())
      if (--room === 0) relay.pause()
    },
    end: (failure?: GatewayError) => ended.resolve(failure),
  })
  return { relay, signals, heard, sent, outlet, ended: ended.promise }
}

test('a full reader pauses the speech, and the next piece is not requested', async () => {
  const { relay, heard, signals, outlet, ended } = await speaking()
  relay.pour(outlet(2))
  await Bun.sleep(5)
  expect([heard, signals.length]).toEqual([['aa', 'bb'], 1])
  relay.pour(outlet(99))
  expect(await ended).toBeUndefined()
  expect([heard.length, signals.length]).toEqual([6, 3])
  expect(relay.failed).toEqual([])
})

// The relay is settled in the same moment in which it is ended, so its record has to be complete by then.
test.each(['unknown', 'unsent'] as const)(
  'aborting the relay ends the piece being requested and records it at once (%s)',
  async (delivery) => {
    const endedWith = (signal: AbortSignal) =>
      new Promise<Sent>((resolve) => {
        const error = new GatewayError('client-gone', 'The client hung up.')
        signal.addEventListener('abort', () => resolve({ kind: 'failed', error, delivery }))
      })
    const { relay, signals, sent, outlet, ended } = await speaking([audio, endedWith])
    relay.pour(outlet(99))
    await until(() => signals.length === 2)
    relay.abort()
    const open = { id: sent[1], status: 0, vendorCost: 0n, delivered: false }
    expect(relay.failed).toMatchObject([open])
    expect(relay.legs.map(({ attemptId }) => attemptId as string)).toEqual(['att_1'])
    expect((await ended)?.kind).toBe('client-gone')
    expect(relay.failed).toMatchObject([open])
    expect(signals).toHaveLength(2)
  },
)

test('a piece that arrives at the moment the relay is aborted is aborted too', async () => {
  let aborted = 0
  let relay: SpeechRelay | undefined
  const exchange: Exchange = {
    ...scriptedExchange(200, ['cc', 'dd']),
    abort: () => void aborted++,
    outliveClient: () => relay?.abort(), // its audio has come, but the relay does not have the piece yet
  }
  const made = await speaking([audio, () => ({ kind: 'response', exchange })])
  relay = made.relay
  relay.pour(made.outlet(99))
  expect((await made.ended)?.kind).toBe('client-gone')
  expect([aborted, made.heard, made.signals.length]).toEqual([1, ['aa', 'bb'], 2])
  expect(relay.legs.map((leg) => leg.count() !== undefined)).toEqual([true, false])
})

test('after an abort no further piece is requested and no audio is converted', async () => {
  const shaped: string[] = []
  const isShaping = Promise.withResolvers<void>()
  const shape = Promise.withResolvers<void>()
  const { relay, signals, outlet, ended } = await speaking([], async (bytes) => {
    shaped.push(Buffer.from(bytes).toString())
    if (shaped.length === 2) {
      isShaping.resolve()
      await shape.promise
      return new Uint8Array() // no frame is full yet, so the next audio is asked for at once
    }
    return bytes
  })
  relay.pour(outlet(99))
  await isShaping.promise
  relay.abort()
  shape.resolve()
  expect((await ended)?.kind).toBe('client-gone')
  expect([shaped, signals.length]).toEqual([['aa', 'bb'], 1])
})
