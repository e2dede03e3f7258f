import type { GatewayError } from '../base/errors.ts'
import { pause } from '../base/pause.ts'

const firstMs = 100
const growth = 4
/** A vendor that asks for a longer pause is not waited for: the request goes elsewhere, or fails. */
const longestMs = 5_000

/** Waits before the next try of one part of a request; false where that would take too long or a signal aborts. */
export async function pauseBefore(
  tries: number,
  error: GatewayError,
  untilAny: readonly AbortSignal[],
): Promise<boolean> {
  const signal = AbortSignal.any([...untilAny])
  const { retryAfterSeconds = 0 } = error.details
  const ms = Math.max(retryAfterSeconds * 1000, firstMs * growth ** (tries - 1))
  return ms <= longestMs && pause(ms, signal)
}
