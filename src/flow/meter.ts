import { crashPoint } from '../base/crash-points.ts'
import type { Deadlines } from '../base/deadlines.ts'
import { asGatewayError, GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { zeroNano } from '../base/money.ts'
import type { Outlet } from '../base/pour.ts'
import { Tap } from '../base/tap.ts'
import type { Sale } from '../billing/funds.ts'
import { priceOfParts } from '../billing/price.ts'
import type { AskFacts } from '../capabilities/ask.ts'
import type { Usage } from '../capabilities/usage.ts'
import type { AttemptRecord } from '../store/requests.ts'
import { attemptRecord } from './attempt.ts'
import type { Drains } from './drains.ts'
import { costOf, countLegs, type Leg } from './legs.ts'
import { Marks } from './marks.ts'
import type { Relay } from './relay.ts'
import { release } from './release.ts'
import type { Answer, Delivered, Routed } from './stages.ts'

type MeterParts = { readonly log: Log; readonly drains: Drains; readonly deadlines: Deadlines }

/** Follows an answer to its end and settles there: before the client can know that it was the end. */
export function makeMeter(parts: MeterParts) {
  return (routed: Routed, delivered: Delivered, failed: readonly AttemptRecord[]): Promise<Answer> | Answer => {
    if (delivered.kind === 'answered') return meterWhole(routed, delivered, failed)
    const { relay, contentType } = delivered
    return { kind: 'stream', ...meterStream(routed, relay, failed, parts), contentType }
  }
}

async function meterWhole(
  routed: Routed,
  { body, contentType, legs, failed: triedAgain = [] }: Extract<Delivered, { kind: 'answered' }>,
  failed: readonly AttemptRecord[],
): Promise<Answer> {
  const sale = saleOf(routed, legs, [...failed, ...triedAgain], 200)
  if (sale === undefined) throw new GatewayError('bug', 'a whole answer counted nothing')
  return { kind: 'whole', body, contentType, cost: await settle(routed, sale) }
}

/** How a stream came to its end. */
type StreamEnd = 'complete' | 'cut' | 'client-gone'

const endStatus = { complete: 200, cut: 502, 'client-gone': 499 } as const satisfies Record<StreamEnd, number>

function meterStream(
  routed: Routed,
  relay: Relay,
  failed: readonly AttemptRecord[],
  parts: MeterParts,
): Pick<Extract<Answer, { kind: 'stream' }>, 'body' | 'ended'> {
  const ended = Promise.withResolvers<'charged' | 'free'>()
  const marks = new Marks(routed, relay, parts.deadlines, (thrown) => outlet.end(asGatewayError(thrown)))
  let isPouring = false
  let isOver = false

  const outlet: Outlet = {
    take(bytes) {
      if (isOver) return // what was on its way when the client left, or the end was told
      marks.delivered(bytes.length)
      crashPoint('mid-stream')
      if (tap.put(bytes)) return
      isPouring = false
      relay.hold() // a slow reader slows the vendor, and memory stays flat
    },
    end(cut) {
      if (isOver) return // the client left while we waited; whoever noticed settles
      isOver = true
      marks.end()
      if (cut !== undefined) relay.abort() // with whatever of it is still at work
      close(cut).catch(() => tap.fail())
    },
  }

  /** The last bytes a client gets: the protocol's end once the money is recorded, or an error in its place. */
  async function close(cut: GatewayError | undefined): Promise<void> {
    const failure = (await settleWithClient(cut)) ?? cut
    const last = failure === undefined ? relay.closing() : routed.errand.writeStreamError(failure)
    // Where a protocol has no words for it, the stream is cut off: a client must not take what it has for the whole.
    if (last === undefined) return tap.fail()
    tap.put(last)
    tap.end()
  }

  /** What came in the way of it. */
  async function settleWithClient(cut: GatewayError | undefined): Promise<GatewayError | undefined> {
    try {
      ended.resolve(await settleStream(routed, relay, failed, cut === undefined ? 'complete' : 'cut'))
      return undefined
    } catch (thrown) {
      ended.resolve('charged') // nobody knows; to try again might be to pay again
      logUnsettled(routed, parts.log, thrown)
      return asGatewayError(thrown)
    }
  }

  async function settleWithoutClient(): Promise<void> {
    try {
      if (routed.route.channel.vendor.hangup === 'drain') await parts.drains.run(relay)
      else relay.abort()
      ended.resolve(await settleStream(routed, relay, failed, 'client-gone'))
    } catch (thrown) {
      ended.resolve('charged')
      logUnsettled(routed, parts.log, thrown)
    }
  }

  const tap = new Tap(
    {
      wanted() {
        if (isPouring || isOver) return
        isPouring = true
        relay.pour(outlet)
      },
      gone() {
        if (isOver) return
        isOver = true
        marks.end()
        void settleWithoutClient()
      },
    },
    routed.signal,
  )
  return { body: tap.body, ended: ended.promise }
}

async function settleStream(
  routed: Routed,
  relay: Relay,
  failed: readonly AttemptRecord[],
  end: StreamEnd,
): Promise<'charged' | 'free'> {
  const lost = [...failed, ...(relay.failed ?? [])]
  const sale = saleOf(routed, relay.legs, lost, endStatus[end])
  if (sale !== undefined) {
    await settle(routed, sale)
    return 'charged'
  }
  // Nothing reached the client, so nothing is owed; the attempts stay on record for the vendor's bill.
  const free = relay.legs.map((leg) =>
    attemptRecord(legRouted(routed, leg), { status: 200, vendorCost: zeroNano, delivered: false }),
  )
  await release(
    routed,
    [...lost, ...free],
    new GatewayError(end === 'client-gone' ? 'client-gone' : 'upstream-failed', end),
  )
  return 'free'
}

/** What was delivered, with its price; undefined where it was nothing. */
function saleOf(
  routed: Routed,
  legs: readonly Leg[],
  failed: readonly AttemptRecord[],
  status: number,
): Sale | undefined {
  const counted = countLegs(legs)
  if (counted === undefined) return undefined
  const { prices, costs } = routed.model
  const delivered = legs.map((leg) => {
    const count = leg.count()
    const vendorCost = count === undefined ? zeroNano : costOf(count, costs)
    return attemptRecord(legRouted(routed, leg), { status: 200, vendorCost, delivered: count !== undefined })
  })
  return {
    status,
    basis: counted.basis,
    usage: counted.usage,
    price: priceOfParts(
      counted.parts.map((part) => ({ ...part, request: 1 })),
      prices,
    ),
    ...(!canBeTrue(counted.usage, routed.ask) && { excessTo: 'suspense' as const }),
    streamed: routed.ask.stream,
    durationMs: routed.elapsedMs(),
    attempts: [...failed, ...delivered],
  }
}

function legRouted(routed: Routed, { attemptId }: Leg): Routed {
  return attemptId === routed.attemptId ? routed : { ...routed, attemptId }
}

// A vendor may count a little differently; nobody counts twice as much as the model can take or make.
const miscountMax = 2

function canBeTrue(usage: Usage, { believable }: AskFacts): boolean {
  if (believable === undefined) return true
  const { input = 0, cachedInput = 0, cacheWrite = 0, cacheWriteHour = 0, output = 0 } = usage
  return (
    input + cachedInput + cacheWrite + cacheWriteHour <= believable.input * miscountMax &&
    output <= believable.output * miscountMax
  )
}

/** The vendor has been paid by now: a client that tried again would be served, and pay, a second time. */
async function settle(routed: Routed, sale: Sale): Promise<Sale['price']> {
  try {
    crashPoint('after-usage')
    const charge = await routed.funds.settle(sale)
    crashPoint('after-settle')
    return charge
  } catch (thrown) {
    throw new GatewayError(
      'overloaded',
      'The answer could not be billed, so it is not delivered. Nothing was charged.',
      {
        shouldRetry: false,
        cause: thrown,
      },
    )
  }
}

function logUnsettled(routed: Routed, log: Log, thrown: unknown): void {
  const { cause } = asGatewayError(thrown).details
  log.error(
    {
      request: routed.requestId,
      attempt: routed.attemptId,
      cause: cause instanceof Error ? cause.message : String(thrown),
    },
    'a stream could not be settled; its hold ends at its deadline',
  )
}
