import { forbidRetry, GatewayError } from '../base/errors.ts'
import type { Listener } from '../base/listen.ts'
import { pause } from '../base/pause.ts'
import { within } from '../base/within.ts'
import type { TrackedBilling } from '../billing/open-holds.ts'
import type { Waiting } from '../edge/waiting.ts'

// A load balancer needs a moment to read the 503 of /readyz before the port stops answering.
const noticeMs = 2_000
// The time for clients to read the last bytes they were sent, and for what they owe to be recorded.
const lastWordsMs = 1_000
const lastSettlementsMs = 4_000

export function beingStopped(): GatewayError {
  return new GatewayError('overloaded', 'The gateway is being stopped.', { retryAfterSeconds: 5 })
}

export async function giveNotice(drainMs: number): Promise<void> {
  if (drainMs > 0) await pause(Math.min(noticeMs, drainMs))
}

/** `stop` ends every wait for this part: the requests that wait get the reason. */
type Stoppable = { stop(reason: GatewayError): void }

/** What is to be stopped. */
type Serving = {
  readonly listeners: readonly Listener[]
  readonly billing: TrackedBilling
  /** What requests may be waiting for: vendors, links, tasks. */
  readonly waitedFor: readonly Stoppable[]
  readonly waiting: Waiting
}

/** Waits for requests in flight, then ends what is left: a stream settles what it delivered, and its client is told. */
export async function stopListening(serving: Serving, drainMs: number): Promise<void> {
  const { listeners, billing, waitedFor, waiting } = serving
  const areQuiet = () => listeners.every(({ underway }) => underway === 0)
  const stopped = listeners.map((listener) => listener.stop('gently'))
  await within(drainMs, Promise.all([...stopped, billing.idle()]))
  const reason = beingStopped()
  for (const each of [...waitedFor, waiting]) each.stop(reason)
  await waitUntil(areQuiet)
  if (waiting.isAnybody) {
    // Their answers are held back until the money is recorded.
    await within(lastSettlementsMs, billing.idle())
    await waitUntil(() => !waiting.isAnybody)
    waiting.end(forbidRetry(reason))
    await waitUntil(areQuiet)
  }
  await Promise.all(listeners.map((listener) => listener.stop('at-once')))
  await within(lastSettlementsMs, nothingIsLeft(billing, waiting))
}

/** A request that was refused while it waited for the database may get a hold, or an Idempotency-Key, after that. */
async function nothingIsLeft(billing: TrackedBilling, waiting: Waiting): Promise<void> {
  await waitUntil(() => !waiting.isAnythingBehind, lastSettlementsMs)
  await billing.idle()
}

/** Closes a port on which no request is refused: an operator has to know whether an account was credited. */
export async function closePort(listener: Listener): Promise<void> {
  listener.stop('gently').catch(() => {})
  await waitUntil(() => listener.underway === 0, lastSettlementsMs)
  await listener.stop('at-once')
}

async function waitUntil(isSo: () => boolean, msMax = lastWordsMs): Promise<void> {
  for (let waitedMs = 0; !isSo() && waitedMs < msMax; waitedMs += 10) await pause(10)
}
