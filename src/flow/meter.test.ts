import { expect, test } from 'bun:test'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import { silentLog } from '../base/log.ts'
import { makeMeter } from './meter.ts'
import { Drains } from './drains.ts'
import { StreamRelay } from './relay.ts'

const piece = `data: ${'x'.repeat(40_000)}\n\n`

async function streamed(pieces: string[], marksBroken: boolean) {
  const facts = { ended: false, finished: true, failure: undefined }
  const stream = { facts, take: (event: Uint8Array) => event, closing: () => Buffer.from('done') }
  const leg = {
    attemptId: 'att_1' as never,
    count: () => ({ usage: { input: 1, output: 1 }, basis: 'estimated' as const }),
  }
  const relay = new StreamRelay(scriptedExchange(200, pieces), stream as never, {
    outputTokensMax: 1000,
    leg,
    discreet: (failure) => failure,
  })
  await relay.begin()
  let settled = 0
  const routed = {
    requestId: 'req_1',
    attemptId: 'att_1',
    signal: new AbortController().signal,
    route: { channel: { id: 'c', vendor: { id: 'v', hangup: 'stop' } }, upstreamModel: 'm' },
    model: { prices: { rates: {}, tiers: [] }, costs: { rates: {}, tiers: [] } },
    ask: { stream: true },
    errand: { writeStreamError: () => Buffer.from('error') },
    elapsedMs: () => 0,
    funds: {
      mark() {
        if (marksBroken) throw new Error('EIO')
      },
      settle: async () => {
        settled++
        return 0n
      },
      release: async () => {
        settled++
      },
    },
  }
  const meter = makeMeter({ log: silentLog, drains: new Drains() })
  const answer = (await meter(
    routed as never,
    { kind: 'streaming', relay, contentType: 'text/event-stream' },
    [],
  )) as never as { body: ReadableStream; ended: Promise<string> }
  const text = await new Response(answer.body).text().catch((thrown: unknown) => `broken: ${String(thrown)}`)
  return {
    text: text.slice(-30),
    settled,
    ended: await Promise.race([answer.ended, Bun.sleep(50).then(() => 'never')]),
  }
}

test('a stream is settled once', async () => {
  expect(await streamed([piece, piece], false)).toMatchObject({ settled: 1, ended: 'charged' })
})
test('a mark that cannot be written in the second piece ends the stream and its hold', async () => {
  expect(await streamed(['data: a\n\n', piece], true)).toMatchObject({ settled: 1, ended: 'charged' })
})
test('a mark that cannot be written in the first piece ends the stream and its hold', async () => {
  expect(await streamed([piece], true)).toMatchObject({ settled: 1, ended: 'charged' })
})
