import type { FileSettings } from './schema.ts'

/** The timeouts of a call to a vendor in milliseconds, for a stream and for an answer in one piece. */
export function callTimeouts(written: FileSettings['timeouts']) {
  const shared = {
    connectMs: written.connectSeconds * 1000,
    idleMs: written.idleSeconds * 1000,
    totalMs: written.totalSeconds * 1000,
  }
  return {
    stream: { ...shared, firstByteMs: written.firstByteSeconds * 1000 },
    whole: { ...shared, firstByteMs: written.wholeAnswerSeconds * 1000 },
  }
}

/** How long a client may read nothing, how long its stream may last, and how long the client may hear nothing. */
export function clientTimeouts(written: FileSettings['timeouts']) {
  const { readerSeconds, totalSeconds, quietSeconds } = written
  return { readerMs: readerSeconds * 1000, totalMs: totalSeconds * 1000, quietMs: quietSeconds * 1000 }
}

// Vendors answer a creation within seconds and a poll at once, but a video is large to fetch.
const createMs = 60_000
const askMs = 15_000
const fetchMs = 10 * 60_000

/** The timeouts of a video task's calls, each capped at what its kind of call needs. */
export function taskTimeouts<T extends { readonly firstByteMs: number; readonly totalMs: number }>(whole: T) {
  const within = (ms: number) => ({
    ...whole,
    firstByteMs: Math.min(whole.firstByteMs, ms),
    totalMs: Math.min(whole.totalMs, ms),
  })
  return { create: within(createMs), ask: within(askMs), fetch: within(fetchMs) }
}
