import { setTimeout } from 'node:timers/promises'

/** Waits `ms` and gives true; gives false at once when the signal aborts. */
export async function pause(ms: number, signal?: AbortSignal): Promise<boolean> {
  return setTimeout(ms, true, signal === undefined ? {} : { signal }).catch(() => false)
}
