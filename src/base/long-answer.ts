import type { Clock } from './clock.ts'
import type { Deadlines } from './deadlines.ts'

/** An answer that was handed to the runtime, which closes the connection after so long without a byte. */
export type Sending = {
  /** False once the system has the last of it, and the connection waits for what is asked next. */
  isUnderway(): boolean
  /** How long it may be without a byte from now on, and when it is kept. Does nothing once the answer is sent. */
  allow(seconds: number): void
  untaken(ageMsMax: number): Promise<number | undefined>
}

// The longest that Bun takes. It is told of a reader only when a third of the system's buffer is free again: a million
// bytes and more, so that who reads slowly needs minutes.
const unreadSecondsMax = 255

// Nearly every answer is sent by then, and nothing of it is kept for longer.
const firstLookMs = 1_000
// Of the time that a connection may be idle.
const looks = 4

/**
 * The time that the runtime was given last is also that of the kept connection, and behind the last byte nothing can be said
 * any more. So an answer that a reader needs minutes for is not given those at once, but again and again what an idle connection
 * has, for as long as somebody reads.
 */
export function watchLongAnswer(
  sending: Sending,
  { deadlines, clock, idleSeconds }: { deadlines: Deadlines; clock: Pick<Clock, 'monotonic'>; idleSeconds: number },
): void {
  const lookMs = (idleSeconds * 1000) / looks
  const silentMsMax = (unreadSecondsMax - idleSeconds) * 1000
  const next = deadlines.open(() => void look())
  let last: { readonly untaken: number; readonly since: number } | undefined

  async function look(): Promise<void> {
    if (!sending.isUnderway()) return
    const untaken = await sending.untaken(lookMs / 10)
    // Where the system does not say it, only the runtime sees who reads.
    if (untaken === undefined) return sending.allow(unreadSecondsMax)
    const now = clock.monotonic()
    if (last?.untaken !== untaken) last = { untaken, since: now }
    if (now - last.since > silentMsMax) return
    sending.allow(idleSeconds)
    next.set(lookMs)
  }

  sending.allow(idleSeconds)
  next.set(Math.min(firstLookMs, lookMs))
}
