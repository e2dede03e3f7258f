import { crashPoint } from '../base/crash-points.ts'
import { asGatewayError, GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { zeroNano } from '../base/money.ts'
import { tap } from '../base/tap.ts'
import type { Basis, Sale } from '../billing/funds.ts'
import { priceOf } from '../billing/price.ts'
import type { ChatAnswer } from '../capabilities/chat.ts'
import type { Usage } from '../capabilities/usage.ts'
import type { AttemptRecord } from '../store/requests.ts'
import { attemptRecord } from './call.ts'
import type { Drains } from './drains.ts'
import { estimateOutput } from './estimate.ts'
import { Marks } from './marks.ts'
import type { Relay } from './relay.ts'
import { release } from './release.ts'
import type { Answer, Delivered, Routed } from './stages.ts'

/** Follows an answer to its end and settles there: before the client can know that it was the end. */
export function makeMeter(parts: { log: Log; drains: Drains }) {
  return async (routed: Routed, delivered: Delivered, failed: readonly AttemptRecord[]): Promise<Answer> => {
    if (delivered.kind === 'answered') return meterWhole(routed, delivered.answer, failed)
    return { kind: 'stream', body: meterStream(routed, delivered.relay, failed, parts) }
  }
}

async function meterWhole(routed: Routed, answer: ChatAnswer, failed: readonly AttemptRecord[]): Promise<Answer> {
  const { usage } = answer
  const sale =
    usage === undefined
      ? saleOf(routed, failed, 200, 'estimated', {
          input: routed.codec.estimateInput(routed.ask),
          output: Math.min(answer.estimateOutput(), routed.ask.outputTokensMax * routed.ask.choices),
        })
      : saleOf(routed, failed, 200, 'vendor', usage)
  const cost = await settle(routed, sale)
  return { kind: 'whole', body: answer.body, cost }
}

/** How a stream came to its end. */
type StreamEnd = 'complete' | 'cut' | 'client-gone'

const endStatus = { complete: 200, cut: 502, 'client-gone': 499 } as const satisfies Record<StreamEnd, number>

function meterStream(
  routed: Routed,
  relay: Relay,
  failed: readonly AttemptRecord[],
  parts: { log: Log; drains: Drains },
): ReadableStream<Uint8Array> {
  let over = false
  let reading: Promise<unknown> = Promise.resolve()
  const marks = new Marks(routed, relay)

  /** The last bytes a client gets: the protocol's end once the money is recorded, or an error in its place. */
  async function close(cut: GatewayError | undefined): Promise<Uint8Array> {
    try {
      await settleStream(routed, relay, failed, cut === undefined ? 'complete' : 'cut')
    } catch (thrown) {
      logUnsettled(routed, parts.log, thrown)
      return routed.codec.writeStreamError(asGatewayError(thrown))
    }
    return cut === undefined ? relay.closing() : routed.codec.writeStreamError(cut)
  }

  async function pull(): Promise<Uint8Array | undefined> {
    if (over) return undefined
    let cut: GatewayError | undefined
    try {
      const bytes = await relay.next()
      if (bytes !== undefined) {
        marks.delivered(bytes.length)
        crashPoint('mid-stream')
        return bytes
      }
      relay.complete()
    } catch (thrown) {
      cut = asGatewayError(thrown)
      relay.abort()
    }
    if (over) return undefined // the client left while we waited; whoever noticed settles
    over = true
    return close(cut)
  }

  async function settleWithoutClient(): Promise<void> {
    try {
      if (routed.route.channel.vendor.hangup === 'drain') await parts.drains.run(relay, reading)
      else relay.abort()
      await settleStream(routed, relay, failed, 'client-gone')
    } catch (thrown) {
      logUnsettled(routed, parts.log, thrown)
    }
  }

  return tap(
    {
      pull() {
        const pulled = pull()
        reading = pulled
        return pulled
      },
      gone() {
        if (over) return
        over = true
        void settleWithoutClient()
      },
    },
    routed.signal,
  )
}

async function settleStream(
  routed: Routed,
  relay: Relay,
  failed: readonly AttemptRecord[],
  end: StreamEnd,
): Promise<void> {
  const { usage, outputEvents, finished, ended } = relay.facts
  const status = endStatus[end]
  if (outputEvents > 0 || finished || ended) {
    const { ask } = routed
    const counted = usage ?? {
      input: routed.codec.estimateInput(ask),
      output: Math.min(estimateOutput(relay.facts), ask.outputTokensMax * ask.choices),
    }
    // Some vendors send the usage so far with every chunk: of a stream that was cut, it is only what had been counted.
    const basis = usage !== undefined && (finished || ended) ? 'vendor' : 'estimated'
    await settle(routed, saleOf(routed, failed, status, basis, counted))
  } else {
    // Nothing reached the client, so nothing is owed; the attempt stays on record for the vendor's bill.
    const attempt = attemptRecord(routed, { status: 200, vendorCost: zeroNano, delivered: false })
    await release(
      routed,
      [...failed, attempt],
      new GatewayError(end === 'client-gone' ? 'client-gone' : 'upstream-failed', end),
    )
  }
}

function saleOf(routed: Routed, failed: readonly AttemptRecord[], status: number, basis: Basis, usage: Usage): Sale {
  const counts = { ...usage, request: 1 }
  const { prices, costs } = routed.model
  const delivered = attemptRecord(routed, { status: 200, vendorCost: priceOf(counts, costs), delivered: true })
  return {
    status,
    basis,
    usage,
    price: priceOf(counts, prices),
    ...(!canBeTrue(usage, routed) && { excessTo: 'suspense' as const }),
    streamed: routed.ask.stream,
    durationMs: routed.elapsedMs(),
    attempts: [...failed, delivered],
  }
}

// A vendor may count a little differently; nobody counts twice as much as the model can take or make.
const miscountMax = 2

function canBeTrue(usage: Usage, { ask, model }: Routed): boolean {
  const { input = 0, cachedInput = 0, cacheWrite = 0, output = 0 } = usage
  return (
    input + cachedInput + cacheWrite <= model.contextTokens * miscountMax &&
    output <= model.outputTokensMax * ask.choices * miscountMax
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
