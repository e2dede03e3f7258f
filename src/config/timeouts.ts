import type { FileSettings } from './schema.ts'

/** The limits of a call to a vendor, as they are used: in milliseconds, for a stream and for an answer in one piece. */
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

/** How long a stream waits for its client, in all and at a time, and how long its client hears nothing. */
export function clientTimeouts(written: FileSettings['timeouts']) {
  const { readerSeconds, totalSeconds, quietSeconds } = written
  return { readerMs: readerSeconds * 1000, totalMs: totalSeconds * 1000, quietMs: quietSeconds * 1000 }
}

// A creation is answered within seconds, and a poll at once; a film is large.
const createMs = 60_000
const askMs = 15_000
const fetchMs = 10 * 60_000

/** The same for the calls of a video task, each as short as what it asks for allows. */
export function taskTimeouts<T extends { readonly firstByteMs: number; readonly totalMs: number }>(whole: T) {
  const within = (ms: number) => ({
    ...whole,
    firstByteMs: Math.min(whole.firstByteMs, ms),
    totalMs: Math.min(whole.totalMs, ms),
  })
  return { create: within(createMs), ask: within(askMs), fetch: within(fetchMs) }
}
