import { crashPoint } from '../base/crash-points.ts'
import type { Deadlines } from '../base/deadlines.ts'
import { asGatewayError, forbidRetry, GatewayError } from '../base/errors.ts'
import type { PushedBody } from '../base/http/pushed-body.ts'
import type { Log } from '../base/log.ts'
import type { Nano } from '../base/money.ts'
import type { Outlet } from '../base/pour.ts'
import type { Bytes } from '../base/spliced.ts'
import { Tap, type Watcher } from '../base/tap.ts'
import type { Sale } from '../billing/billing.ts'
import { priceOfParts } from '../billing/price.ts'
import { recordedStatus } from '../billing/record.ts'
import type { AskFacts } from '../capabilities/ask.ts'
import { tokensOf, type Usage } from '../capabilities/usage.ts'
import type { AttemptRecord } from '../store/requests.ts'
import { legRecord, wastedAttempts } from './attempt-records.ts'
import type { Drains } from './drains.ts'
import { KeepAlive } from './keep-alive.ts'
import { costOfLeg, countLegs, type Leg } from './legs.ts'
import { Marks } from './marks.ts'
import type { Relay } from './relay.ts'
import { release, releaseOrLog } from './release.ts'
import { SlowReader, type ReaderTimeouts } from './slow-reader.ts'
import type { Answer, Delivered, Routed } from './stages.ts'

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
    const { relay, contentType, cost } = delivered
    const { body, ended } = new MeteredStream(metered, relay, parts)
    return { kind: 'stream', body, ended, contentType, ...(cost !== undefined && { cost }) }
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

/** How a stream ended: at its end, or before it, with an error. */
type StreamEnd = 'complete' | GatewayError

/** A stream on its way to the client. Whether it comes to its end or its client leaves, it is settled once. */
class MeteredStream implements Outlet<Bytes>, Watcher {
  readonly #metered: Metered
  readonly #relay: Relay
  readonly #parts: MeterParts
  readonly #marks: Marks
  readonly #tap: Tap
  readonly #ended = Promise.withResolvers<void>()
  #alive: KeepAlive | undefined
  #reader: SlowReader | undefined
  #isPouring = false
  #isOver = false
  #isGone = false
  /** The last bytes are put, and the client has yet to take them. */
  #isLastPut = false

  constructor(metered: Metered, relay: Relay, parts: MeterParts) {
    const { routed } = metered
    this.#metered = metered
    this.#relay = relay
    this.#parts = parts
    this.#marks = new Marks(routed, relay, parts.deadlines, {
      broken: (thrown) => this.end(asGatewayError(thrown)),
      passed: () => this.#passed(),
    })
    // Comes last: where the client has left already, this calls `gone`.
    this.#tap = new Tap(this, routed.signal)
  }

  get body(): PushedBody {
    return this.#tap
  }

  /** Resolves once the stream's hold has ended, or could not be ended. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  take(bytes: Bytes): void {
    if (this.#isOver) return // bytes that were on their way when the client left or the stream ended
    this.#marks.delivered(bytes.length)
    crashPoint('mid-stream')
    this.#put(bytes)
  }

  end(cut?: GatewayError): void {
    if (!this.#over()) return // the client left before this, and `gone` settles
    if (cut !== undefined) this.#relay.abort() // ends the calls of this answer that are still running
    this.#close(cut).catch((thrown: unknown) => this.#tap.fail(thrown))
  }

  wanted(): void {
    this.#reader?.caughtUp()
    if (this.#isLastPut) return this.#finish()
    if (this.#isPouring || this.#isOver) return
    this.#isPouring = true
    this.#relay.pour(this)
  }

  gone(): void {
    this.#isGone = true
    this.#reader?.caughtUp()
    if (this.#over()) void this.#settleWithoutClient()
  }

  /** Called with every mark. The keep-alive is created with the first one, so that short streams do not pay for it. */
  #passed(): void {
    const relay = this.#relay
    if (relay.keepAlive === undefined) return
    const { deadlines, timeouts } = this.#parts
    this.#alive ??= new KeepAlive(deadlines, timeouts.quietMs, () => {
      const sign = this.#isPouring && !this.#marks.isDue ? relay.keepAlive?.() : undefined
      if (sign !== undefined) this.#put(sign)
    })
    this.#alive.delivered()
  }

  #put(bytes: Bytes): void {
    if (this.#tap.put(bytes)) return
    this.#isPouring = false
    this.#relay.pause() // a slow reader slows the vendor, and memory stays flat
    this.#waitForReader()
  }

  /** Marks the stream as over; false if it was over already. */
  #over(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#marks.end()
    this.#alive?.end()
    this.#reader?.caughtUp()
    return true
  }

  /** Neither a hold nor a vendor waits for ever for a client that has stopped reading. */
  #waitForReader(): void {
    const { deadlines, timeouts } = this.#parts
    this.#reader ??= new SlowReader(this.#metered.routed, deadlines, timeouts, () => {
      this.#tap.fail()
      this.gone()
    })
    this.#reader.behind()
  }

  /** Sends the client its last bytes: the protocol's end once the money is recorded, or an error in its place. */
  async #close(cut: GatewayError | undefined): Promise<void> {
    const failure = (await this.#settleWithClient(cut)) ?? cut
    const { errand } = this.#metered.routed
    const last = failure === undefined ? this.#relay.closing() : errand.writeStreamError(failure)
    // Where the protocol has no error event, the stream is cut off: a client must not take what it has for the whole.
    if (last === undefined) return this.#tap.fail(failure)
    if (this.#tap.put(last)) return this.#finish()
    if (this.#isGone) return
    this.#isLastPut = true
    this.#waitForReader() // what the client has not taken when the body ends is lost with the connection
  }

  #finish(): void {
    this.#metered.routed.client.letGo()
    this.#tap.end()
  }

  /** Settles, and gives the error if that failed. */
  async #settleWithClient(cut: GatewayError | undefined): Promise<GatewayError | undefined> {
    try {
      await settleStream(this.#metered, this.#relay, cut ?? 'complete')
      return undefined
    } catch (thrown) {
      logUnsettled(this.#metered, thrown)
      return asGatewayError(thrown)
    } finally {
      this.#ended.resolve()
    }
  }

  async #settleWithoutClient(): Promise<void> {
    const relay = this.#relay
    try {
      relay.left?.()
      const { hangup } = this.#metered.routed.route.channel.vendor
      const chargesOn = hangup === 'drain' || relay.isUncounted === true
      if (chargesOn) await this.#parts.drains.run(relay)
      else relay.abort()
      await settleStream(this.#metered, relay, new GatewayError('client-gone', 'The client hung up.'))
    } catch (thrown) {
      logUnsettled(this.#metered, thrown)
    } finally {
      this.#ended.resolve()
    }
  }
}

async function settleStream(metered: Metered, relay: Relay, end: StreamEnd): Promise<void> {
  const { routed, log } = metered
  const { legs } = relay
  const failed = [...metered.failed, ...(relay.failed ?? [])]
  try {
    const sale = saleOf(routed, legs, failed, end === 'complete' ? 200 : recordedStatus(end))
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
  const error = end === 'complete' ? new GatewayError('upstream-failed', 'The stream had nothing in it.') : end
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
    return legRecord(routed, leg, { vendorCost: costOfLeg(leg, count, costs), delivered: count !== undefined })
  })
  const sale: Sale = {
    status,
    basis: counted.basis,
    usage: counted.usage,
    price: priceOfParts(counted.parts, prices),
    streamed: routed.ask.stream,
    durationMs: routed.elapsedMs(),
    attempts: [...failed, ...delivered],
  }
  return canBeTrue(counted.usage, routed.ask) ? sale : { ...sale, excessTo: 'suspense' }
}

// A vendor may count a little differently from us, but no true count is twice what the model can take or make.
const miscountMax = 2

function canBeTrue(usage: Usage, { believable }: AskFacts): boolean {
  if (believable === undefined) return true
  const { output = 0, imageOutput = 0, audioOutput = 0 } = usage
  const made = output + imageOutput + audioOutput
  const given = tokensOf(usage) - made
  return given <= believable.input * miscountMax && made <= believable.output * miscountMax
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
