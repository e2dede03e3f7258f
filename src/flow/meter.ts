import { crashPoint } from '../base/crash-points.ts'
import type { Deadlines } from '../base/deadlines.ts'
import { asGatewayError, forbidRetry, GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Nano } from '../base/money.ts'
import type { Outlet } from '../base/pour.ts'
import { Tap } from '../base/tap.ts'
import type { Sale } from '../billing/billing.ts'
import { priceOfParts } from '../billing/price.ts'
import type { AskFacts } from '../capabilities/ask.ts'
import type { Usage } from '../capabilities/usage.ts'
import type { AttemptRecord } from '../store/requests.ts'
import { attemptRecord } from './attempt.ts'
import type { Drains } from './drains.ts'
import { KeepAlive } from './keep-alive.ts'
import { costOfLeg, countLegs, type Leg } from './legs.ts'
import { Marks } from './marks.ts'
import type { Relay } from './relay.ts'
import { release, releaseOrLog } from './release.ts'
import { SlowReader, type ReaderTimeouts } from './slow-reader.ts'
import type { Answer, Delivered, Routed } from './stages.ts'
import { wastedAttempts } from './wasted.ts'

type MeterParts = {
  readonly log: Log
  readonly drains: Drains
  readonly deadlines: Deadlines
  /** `quietMs`: how long a stream may be silent before its client is sent a keep-alive. */
  readonly timeouts: ReaderTimeouts & { readonly quietMs: number }
}

/** `failed`: the attempts that failed before this one, which belong on the request's record. */
type Metered = { readonly routed: Routed; readonly failed: AttemptRecord[]; readonly log: Log }

/** Follows an answer to its end and settles there, before the client is sent the end. */
export function makeMeter(parts: MeterParts) {
  return (routed: Routed, delivered: Delivered, failed: AttemptRecord[]): Promise<Answer> | Answer => {
    const metered = { routed, failed, log: parts.log }
    if (delivered.kind === 'answered') return meterWhole(metered, delivered)
    const { relay, contentType } = delivered
    return { kind: 'stream', ...meterStream(metered, relay, parts), contentType }
  }
}

async function meterWhole(
  { routed, failed }: Metered,
  { body, contentType, legs, failed: triedAgain = [] }: Extract<Delivered, { kind: 'answered' }>,
): Promise<Answer> {
  try {
    const sale = saleOf(routed, legs, [...failed, ...triedAgain], 200)
    if (sale === undefined) throw new GatewayError('bug', 'a whole answer counted nothing')
    return { kind: 'whole', body, contentType, cost: await settle(routed, sale) }
  } catch (thrown) {
    failed.push(...triedAgain, ...wastedAttempts(routed, legs)) // recorded as our loss when `run` releases the hold
    // The vendor has answered and will charge: a client that tried again would make us pay for a second answer.
    throw forbidRetry(asGatewayError(thrown))
  }
}

/** How a stream ended. */
type StreamEnd = 'complete' | 'cut' | 'client-gone'

const endStatus = { complete: 200, cut: 502, 'client-gone': 499 } as const satisfies Record<StreamEnd, number>

function meterStream(
  metered: Metered,
  relay: Relay,
  { drains, deadlines, timeouts }: MeterParts,
): Pick<Extract<Answer, { kind: 'stream' }>, 'body' | 'ended'> {
  const { routed } = metered
  const ended = Promise.withResolvers<void>()
  const broken = (thrown: unknown) => outlet.end(asGatewayError(thrown))
  const marks = new Marks(routed, relay, deadlines, { broken, passed })
  let alive: KeepAlive | undefined
  let reader: SlowReader | undefined
  let isPouring = false
  let isOver = false
  let isGone = false
  let isLastPut = false

  const outlet: Outlet = {
    take(bytes) {
      if (isOver) return // bytes that were on their way when the client left or the stream ended
      marks.delivered(bytes.length)
      crashPoint('mid-stream')
      put(bytes)
    },
    end(cut) {
      if (!over()) return // the client left before this, and `leave` settles
      if (cut !== undefined) relay.abort() // ends the calls of this answer that are still running
      close(cut).catch(() => tap.fail())
    },
  }

  /** Called with every mark. The keep-alive is created with the first one, so that short streams do not pay for it. */
  function passed(): void {
    const { keepAlive } = routed.errand
    if (keepAlive === undefined) return
    alive ??= new KeepAlive(deadlines, timeouts.quietMs, () => {
      if (isPouring && !marks.isDue) put(keepAlive)
    })
    alive.delivered()
  }

  function put(bytes: Uint8Array): void {
    if (tap.put(bytes)) return
    isPouring = false
    relay.pause() // a slow reader slows the vendor, and memory stays flat
    waitForReader()
  }

  /** Marks the stream as over; false if it was over already. */
  function over(): boolean {
    if (isOver) return false
    isOver = true
    marks.end()
    alive?.end()
    reader?.caughtUp()
    return true
  }

  function leave(): void {
    isGone = true
    reader?.caughtUp()
    if (over()) void settleWithoutClient()
  }

  /** Neither a hold nor a vendor waits for ever for a client that has stopped reading. */
  function waitForReader(): void {
    reader ??= new SlowReader(routed, deadlines, timeouts, () => {
      tap.fail()
      leave()
    })
    reader.behind()
  }

  /** Sends the client its last bytes: the protocol's end once the money is recorded, or an error in its place. */
  async function close(cut: GatewayError | undefined): Promise<void> {
    const failure = (await settleWithClient(cut)) ?? cut
    const last = failure === undefined ? relay.closing() : routed.errand.writeStreamError(failure)
    // Where the protocol has no error event, the stream is cut off: a client must not take what it has for the whole.
    if (last === undefined) return tap.fail()
    if (tap.put(last)) return finish()
    if (isGone) return
    isLastPut = true
    waitForReader() // what the client has not taken when the body ends is lost with the connection
  }

  function finish(): void {
    routed.client.letGo()
    tap.end()
  }

  /** Settles, and gives the error if that failed. */
  async function settleWithClient(cut: GatewayError | undefined): Promise<GatewayError | undefined> {
    try {
      await settleStream(metered, relay, cut === undefined ? 'complete' : 'cut')
      return undefined
    } catch (thrown) {
      logUnsettled(metered, thrown)
      return asGatewayError(thrown)
    } finally {
      ended.resolve()
    }
  }

  async function settleWithoutClient(): Promise<void> {
    try {
      relay.left?.()
      const chargesOn = routed.route.channel.vendor.hangup === 'drain' || relay.isUncounted === true
      if (chargesOn) await drains.run(relay)
      else relay.abort()
      await settleStream(metered, relay, 'client-gone')
    } catch (thrown) {
      logUnsettled(metered, thrown)
    } finally {
      ended.resolve()
    }
  }

  const tap = new Tap(
    {
      wanted() {
        reader?.caughtUp()
        if (isLastPut) return finish()
        if (isPouring || isOver) return
        isPouring = true
        relay.pour(outlet)
      },
      gone: leave,
    },
    routed.signal,
  )
  return { body: tap.body, ended: ended.promise }
}

async function settleStream(metered: Metered, relay: Relay, end: StreamEnd): Promise<void> {
  const { routed, log } = metered
  const { legs } = relay
  const failed = [...metered.failed, ...(relay.failed ?? [])]
  try {
    const sale = saleOf(routed, legs, failed, endStatus[end])
    if (sale !== undefined) {
      await settle(routed, sale)
      return
    }
  } catch (thrown) {
    // What the calls cost is our loss. If the settlement was recorded after all, this release changes nothing.
    await releaseOrLog(log, routed, [...failed, ...wastedAttempts(routed, legs)], thrown)
    throw thrown
  }
  // Nothing reached the client, so nothing is owed; the attempts are recorded, to be compared with the vendor's bill.
  const error = new GatewayError(end === 'client-gone' ? 'client-gone' : 'upstream-failed', end)
  await release(routed, [...failed, ...wastedAttempts(routed, legs)], error)
}

/** What was delivered, with its price; undefined if nothing was. */
function saleOf(
  routed: Routed,
  legs: readonly Leg[],
  failed: readonly AttemptRecord[],
  status: number,
): Sale | undefined {
  const counted = countLegs(legs)
  if (counted === undefined) return undefined
  const { prices, costs } = routed.model
  const delivered = counted.legs.map(({ leg, counted: count }) => {
    const vendorCost = costOfLeg(leg, count, costs)
    return attemptRecord(legRouted(routed, leg), { status: 200, vendorCost, delivered: count !== undefined })
  })
  return {
    status,
    basis: counted.basis,
    usage: counted.usage,
    price: priceOfParts(counted.parts, prices),
    ...(!canBeTrue(counted.usage, routed.ask) && { excessTo: 'suspense' as const }),
    streamed: routed.ask.stream,
    durationMs: routed.elapsedMs(),
    attempts: [...failed, ...delivered],
  }
}

function legRouted(routed: Routed, { attemptId }: Leg): Routed {
  return attemptId === routed.attemptId ? routed : { ...routed, attemptId }
}

// A vendor may count a little differently from us, but no true count is twice what the model can take or make.
const miscountMax = 2

function canBeTrue(usage: Usage, { believable }: AskFacts): boolean {
  if (believable === undefined) return true
  const { input = 0, cachedInput = 0, cacheWrite = 0, cacheWriteHour = 0, output = 0 } = usage
  return (
    input + cachedInput + cacheWrite + cacheWriteHour <= believable.input * miscountMax &&
    output <= believable.output * miscountMax
  )
}

async function settle(routed: Routed, sale: Sale): Promise<Nano> {
  try {
    crashPoint('after-usage')
    const charged = await routed.funds.settle(sale)
    crashPoint('after-settle')
    return charged
  } catch (thrown) {
    const what = sale.streamed
      ? 'The answer could not be billed'
      : 'The answer could not be billed, so it is not delivered'
    throw new GatewayError('overloaded', `${what}. Nothing was charged.`, { cause: thrown })
  }
}

function logUnsettled({ routed, log }: Metered, thrown: unknown): void {
  const { cause } = asGatewayError(thrown).details
  log.error(
    {
      request: routed.requestId,
      attempt: routed.attemptId,
      cause: cause instanceof Error ? cause.message : String(thrown),
    },
    'a stream could not be settled',
  )
}
