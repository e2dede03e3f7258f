import type { Clock } from '../../base/clock.ts'
import type { GuardedFetch } from '../../base/guarded-fetch.ts'
import { scrub } from '../../base/scrub.ts'
import { isSuccess } from '../../base/status.ts'
import { GuardRefusal } from '../../base/untrusted-url.ts'
import type { Next, WebhookAttempt } from '../../store/outbox.ts'
import type { Ending } from './gate.ts'
import { waitAfter } from './schedule.ts'
import { signedHeaders } from './sign.ts'

export type AttemptLimits = { readonly bytesMax: number; readonly connectMs: number; readonly totalMs: number }

/** A 2xx within 15 s counts as delivered; a host that accepts no connection within 10 s is given up earlier. */
export const attemptLimits: AttemptLimits = { bytesMax: 64 * 1024, connectMs: 10_000, totalMs: 15_000 }

export type AttemptParts = {
  readonly fetch: GuardedFetch
  readonly clock: Clock
  readonly limits: AttemptLimits
}

export type Letter = { readonly id: string; readonly url: string; readonly payload: string }

/** Sends an event once. Undefined where we aborted it before a response came: then it does not count as an attempt. */
export async function attemptDelivery(
  { fetch, clock, limits }: AttemptParts,
  letter: Letter,
  secrets: readonly string[],
  signal: AbortSignal,
): Promise<WebhookAttempt | undefined> {
  const at = clock.now()
  const startedAt = clock.monotonic()
  const ended = (how: Partial<WebhookAttempt>): WebhookAttempt => {
    return { at, durationMs: Math.round(clock.monotonic() - startedAt), status: 0, why: null, excerpt: null, ...how }
  }
  // The account's secrets cannot be unsealed: the installation's secret has changed since they were sealed.
  if (secrets.length === 0) return ended({ why: 'unsigned' })
  try {
    const message = { headers: signedHeaders(letter, secrets, at), body: letter.payload }
    const { status, body } = await fetch.post(letter.url, message, { ...limits, signal })
    return ended({ status, excerpt: isSuccess(status) ? null : excerptOf(body) })
  } catch (thrown) {
    if (signal.aborted) return undefined
    return ended({ why: thrown instanceof GuardRefusal ? thrown.reason : 'internal' })
  }
}

const gone = 410

/** What follows from an attempt; `attempts` counts it and those before. */
export function nextAfter({ status }: WebhookAttempt, attempts: number, now: number, random: () => number): Next {
  if (isSuccess(status)) return { state: 'delivered' }
  if (status === gone) return { state: 'gone' }
  const waitMs = waitAfter(attempts, random)
  return waitMs === undefined ? { state: 'given-up' } : { state: 'pending', nextAt: now + waitMs }
}

// A load balancer answers 502, 503 or 504 for a server that is down; with 429 a server asks for fewer requests.
const silentStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** Whether the host answers at all. A 404 or a 500 concerns one URL, and a host may have many. */
export function endingOf({ status, why }: WebhookAttempt): Ending {
  if (why === 'unsigned' || why === 'internal') return 'abandoned'
  return status === 0 || silentStatuses.has(status) ? 'silent' : 'answered'
}

const excerptCharacters = 200

/** One line of text, without characters that would break a database or a terminal, and without likely secrets. */
function excerptOf(body: Uint8Array): string | null {
  // A character takes at most four bytes; one that is cut in two is left out.
  const text = new TextDecoder().decode(body.subarray(0, excerptCharacters * 4), { stream: true })
  const line = scrub(text.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim())
  return line === '' ? null : Array.from(line).slice(0, excerptCharacters).join('')
}
