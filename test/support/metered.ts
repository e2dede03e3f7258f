import { World } from '../simulation/world.ts'
import { Deadlines } from '../../src/base/deadlines.ts'
import type { GatewayError } from '../../src/base/errors.ts'
import { streamOf } from '../../src/base/http/pushed-body.ts'
import { Reply } from '../../src/base/http/reply.ts'
import { silentLog } from '../../src/base/log.ts'
import { pico } from '../../src/base/money.ts'
import type { Outlet } from '../../src/base/pour.ts'
import type { Ending, Sale } from '../../src/billing/billing.ts'
import { Drains } from '../../src/flow/drains.ts'
import { makeMeter } from '../../src/flow/meter.ts'
import type { Relay } from '../../src/flow/relay.ts'
import type { Answer, Delivered } from '../../src/flow/stages.ts'
import type { AttemptRecord } from '../../src/store/requests.ts'

/** The estimated usage of an answer that the vendor did not count: two tokens. */
export const leg = {
  attemptId: 'att_1' as never,
  count: () => ({ usage: { input: 1, output: 1 }, basis: 'estimated' as const }),
}

export type AtMeter = {
  readonly marksBroken?: boolean
  readonly settlesBroken?: boolean
  readonly isWordless?: boolean
  readonly hangup?: 'stop' | 'drain'
  readonly believable?: { readonly input: number; readonly output: number }
}

const perToken = (rate: bigint) => ({ rates: { input: pico(rate), output: pico(rate) }, tiers: [] })

/**
 * A request that has reached the meter, and what happened to its hold. A token costs us one nano, and the customer two.
 */
export function atMeter(options: AtMeter = {}) {
  const { marksBroken = false, settlesBroken = false, isWordless = false, hangup = 'stop', believable } = options
  const world = new World(1)
  const seen = { marked: 0, settled: 0 }
  const sales: Sale[] = []
  const releases: Ending[] = []
  let letGo = 0
  const routed = {
    requestId: 'req_1',
    attemptId: 'att_1',
    signal: new AbortController().signal,
    route: { channel: { id: 'c', vendor: { id: 'v', hangup } }, upstreamModel: 'm' },
    model: { prices: perToken(2_000n), costs: perToken(1_000n) },
    ask: { stream: true, believable },
    errand: {
      writeStreamError: () => (isWordless ? undefined : Buffer.from('error')),
    },
    client: { letGo: () => void letGo++, unreadBytes: () => Promise.resolve(4_000_000) },
    elapsedMs: () => 0,
    funds: {
      mark() {
        if (marksBroken) throw new Error('EIO')
        seen.marked++
      },
      settle: async (sale: Sale) => {
        if (settlesBroken) throw new Error('EIO')
        seen.settled++
        sales.push(sale)
        return sale.price
      },
      release: async (ending: Ending) => {
        seen.settled++
        releases.push(ending)
      },
    },
  }
  const timeouts = { readerMs: 1_000, totalMs: 60_000, quietMs: 15_000 }
  const meter = makeMeter({
    log: silentLog,
    drains: new Drains(),
    deadlines: new Deadlines(world.clock, world),
    timeouts,
  })
  const measure = (delivered: Delivered, failed: AttemptRecord[]) => meter(routed as never, delivered, failed)
  return { measure, seen, sales, releases, letGo: () => letGo, pass: (ms: number) => world.run(world.now + ms) }
}

/** One stream through the meter: what its client is sent, and what happened to its hold. */
export function meteredReply(relay: Relay, options: AtMeter = {}, failed: AttemptRecord[] = []) {
  const { measure, ...rest } = atMeter(options)
  const answer = measure({ kind: 'streaming', relay, contentType: 'text/event-stream' }, failed) as Extract<
    Answer,
    { kind: 'stream' }
  >
  return { reply: new Reply(200, {}, answer.body), body: answer.body, ended: answer.ended, ...rest }
}

/** The same, read in this process. */
export function metered(relay: Relay, options: AtMeter = {}, failed: AttemptRecord[] = []) {
  const { body, ...made } = meteredReply(relay, options, failed)
  return { ...made, body: streamOf(body) }
}

/** A stream that a test drives by hand. */
export function byHand() {
  let outlet: Outlet | undefined
  const relay: Relay = {
    legs: [leg],
    pour: (to) => void (outlet = to),
    pause() {},
    keepAlive: () => Buffer.from('alive'),
    closing: () => Buffer.from('done'),
    abort() {},
  }
  return {
    relay,
    give: (text: string) => outlet?.take(Buffer.from(text)),
    end: () => outlet?.end(),
    fail: (cut: GatewayError) => outlet?.end(cut),
  }
}
