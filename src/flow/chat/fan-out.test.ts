import { expect, test } from 'bun:test'
import { scriptedExchange } from '../../../test/support/scripted-exchange.ts'
import { systemClock } from '../../base/clock.ts'
import { GatewayError } from '../../base/errors.ts'
import { abortSignalOf } from '../../base/http/client-signal.ts'
import { silentLog } from '../../base/log.ts'
import type { Outlet } from '../../base/pour.ts'
import { wholeOf } from '../../base/spliced.ts'
import { chatAsk } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { makeChannels } from '../../upstream/channels.ts'
import type { Sent, Transport } from '../../upstream/transport.ts'
import { compatible } from '../../vendors/compatible/compatible.ts'
import { openaiChat } from '../../wire/openai/chat.ts'
import type { StreamRelay } from '../relay.ts'
import { callSideBySide } from './fan-out.ts'
import { MergedRelay } from './merged-relay.ts'

/** A relay whose vendor always has something more: each time that it is poured, it gives one piece at once. */
function eager(name: string) {
  let left = 100
  const relay = {
    legs: [],
    pourFirst() {},
    pour(outlet: Outlet) {
      if (left-- > 0) outlet.take(Buffer.from(name))
      else outlet.end()
    },
    pause() {},
    abort() {},
  }
  return relay as unknown as StreamRelay
}

test('a slow reader gets events of all choices in turn', () => {
  const merged = new MergedRelay([eager('a'), eager('b'), eager('c')], undefined as never)
  let given = ''
  for (let wanted = 0; wanted < 6; wanted++) {
    let room = 1 // like the body of a client: it takes a first piece, and a second one is too many
    merged.pour({
      take(bytes) {
        given += Buffer.from(wholeOf(bytes)).toString()
        if (room-- === 0) merged.pause()
      },
      end() {},
    })
  }
  expect(given).toBe('abc'.repeat(4))
})

const traits = { ...plainModel, contextTokens: 1_000, outputTokensMax: 100 }
const ask = chatAsk(
  {
    protocol: 'openai',
    model: 'm',
    stream: false,
    usageShown: true,
    choices: 2,
    outputTokensMax: 100,
    inputTokensMax: 1_000,
    searchesMax: 0,
    native: { messages: [{ role: 'user', content: 'Hi' }] },
    headers: {},
  },
  traits,
)

type Respond = (stopped: AbortSignal) => Promise<Sent>

/** What becomes of two choices, to which a vendor responds like this. */
async function twoChoices(
  responses: readonly Respond[],
  {
    stream,
    hangup,
    seed,
    sending = () => {},
  }: { stream: boolean; hangup: 'stop' | 'drain'; seed?: number; sending?: () => void },
  bodies: string[] = [],
) {
  let calls = 0
  const send: Transport['send'] = async ({ body }, _timeouts, signal) => {
    if (typeof body === 'string') bodies.push(body)
    const respond = responses[calls++]
    if (respond === undefined) throw new Error('too many calls')
    return respond(abortSignalOf(signal))
  }
  const channels = makeChannels([], systemClock, () => 0)
  const parts = {
    transport: { send },
    timeouts: { stream: {}, whole: { totalMs: 1_000 } },
    tenantLabel: String,
    channels: () => channels,
    log: silentLog,
  }
  const vendor = compatible({ id: 'v', baseUrl: 'https://v', choicesMax: 1, hangup })
  const routed = {
    ask: { ...ask, stream, native: { ...ask.native, ...(seed !== undefined && { seed }) } },
    codec: openaiChat,
    requestId: 'req_1',
    attemptId: 'att_1',
    principal: { accountId: 'acc_1' },
    model: { ...traits, prices: { rates: {} } },
    markVendorCalled() {},
    signal: new AbortController().signal,
    funds: { sending },
    elapsedMs: () => 0,
    route: { channel: { id: 'c', vendor, baseUrl: 'https://v' }, credential: 'k', upstreamModel: 'm' },
  }
  return callSideBySide(parts as never, routed as never)
}

const busy: Respond = async () => ({
  kind: 'response',
  exchange: scriptedExchange(503, ['{"error":{"message":"busy"}}']),
})

/** Two choices, the first of which is refused: what the line is told, with the failure of the second one beside it. */
async function besideRefused(hangup: 'stop' | 'drain', other: Respond) {
  const outcome = await twoChoices([busy, other], { stream: false, hangup })
  if (outcome.kind !== 'failed') throw new Error('it did not fail')
  const { retry, mayBeCharged, attempts, error } = outcome
  return { retry, mayBeCharged, attempts: attempts.length, shouldRetry: error.details.shouldRetry }
}

const gone = new GatewayError('client-gone', 'The client hung up.')
const broken = new GatewayError('upstream-failed', "The connection to the model's vendor failed.")
/** A call that fails when the refusal of the other one ends it. */
const fails = (delivery: 'unsent' | 'unknown', error: GatewayError) => (stopped: AbortSignal) =>
  new Promise<Sent>((resolve) => {
    stopped.addEventListener('abort', () => resolve({ kind: 'failed', error, delivery }))
  })
const elsewhere = { retry: 'elsewhere', shouldRetry: undefined } as const
const final = { retry: 'no', mayBeCharged: true, shouldRetry: false } as const

// No request is paid for twice, and none is refused that another channel could serve at no further cost.
test.each([
  {
    name: 'goes elsewhere when the other choice was never sent',
    hangup: 'stop',
    other: fails('unsent', gone),
    told: { ...elsewhere, mayBeCharged: false },
  },
  {
    name: 'goes elsewhere when we cut the other choice off',
    hangup: 'stop',
    other: fails('unknown', gone),
    told: { ...elsewhere, mayBeCharged: true },
  },
  {
    name: 'is final when the vendor charges for the other choice after we cut it off',
    hangup: 'drain',
    other: fails('unknown', gone),
    told: final,
  },
  {
    name: 'is final when the vendor broke the other choice off',
    hangup: 'stop',
    other: fails('unknown', broken),
    told: final,
  },
] as const)('a request with one refused choice $name', async ({ hangup, other, told }) => {
  expect(await besideRefused(hangup, other)).toEqual({ ...told, attempts: 2 })
})

test('a choice that cannot be recorded fails the request, and not the other one that is ended for it', async () => {
  let announced = 0
  const sending = () => {
    if (++announced === 2) throw new GatewayError('overloaded', 'the disk is full')
  }
  const outcome = await twoChoices([fails('unknown', gone)], { stream: false, hangup: 'stop', sending })
  expect(outcome).toMatchObject({ kind: 'failed', retry: 'no', mayBeCharged: true, error: { kind: 'overloaded' } })
})

const event = (choice: object) => `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, ...choice }] })}\n\n`
const word = event({ delta: { content: 'Hi' } })
const end = `${event({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`
const streams = (...pieces: string[]): Sent => ({
  kind: 'response',
  exchange: scriptedExchange(200, pieces, 'text/event-stream'),
})

const late: Respond = async () => {
  await new Promise(setImmediate)
  return streams(word + end)
}

test('both choices begin before one finishes, also if that one comes whole after the other has begun', async () => {
  const outcome = await twoChoices([late, async () => streams(word, end)], { stream: true, hangup: 'stop' })
  if (outcome.kind !== 'streaming') throw new Error('it did not stream')
  const written = await new Promise<string>((resolve, reject) => {
    let text = ''
    outcome.relay.pour({
      take: (bytes) => void (text += Buffer.from(wholeOf(bytes)).toString()),
      end: (failure) => (failure === undefined ? resolve(text) : reject(failure)),
    })
  })
  const [begun] = written.split('"finish_reason":"stop"')
  for (const index of [0, 1]) expect(begun).toContain(`"index":${index},"delta":{"role":"assistant"`)
})

const whole: Respond = async () => ({
  kind: 'response',
  exchange: scriptedExchange(200, ['{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}']),
})

test.each([
  ['the seeds that follow the client’s', 7, [7, 8]],
  [
    'the seeds before the client’s, where vendors take none that follows',
    2_147_483_647,
    [2_147_483_647, 2_147_483_646],
  ],
  ['no seed where the client gave none', undefined, [undefined, undefined]],
])('the choices have %s, since one seed would make one choice of all', async (_, seed, expected) => {
  const bodies: string[] = []
  const outcome = await twoChoices(
    [whole, whole],
    { stream: false, hangup: 'stop', ...(seed !== undefined && { seed }) },
    bodies,
  )
  expect(outcome.kind).toBe('answered')
  expect(bodies.map((body) => (JSON.parse(body) as { seed?: number }).seed)).toEqual(expected)
})
