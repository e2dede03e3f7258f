import { setTimeout } from 'node:timers/promises'

/** Waits for so long; false, and at once, where the signal says that nobody waits any more. */
export async function pause(ms: number, signal?: AbortSignal): Promise<boolean> {
  return setTimeout(ms, true, signal === undefined ? {} : { signal }).catch(() => false)
}
