import type { Clock } from '../clock.ts'
import type { Deadlines } from '../deadlines.ts'

/** A response on its way to a client, over a connection that is closed after a set time without a byte. */
export type Sending = {
  /** False once the system has the last byte and the connection waits for the next request. */
  isUnderway(): boolean
  /** Sets how long the connection may be idle, now and when it is kept alive. No effect once the response is sent. */
  allow(seconds: number): void
  unreadBytes(ageMsMax: number): Promise<number | undefined>
}

// The connection notices that its client reads only when a third of the system's buffer is free again, which is a
// million bytes or more: a client that reads 5 KB a second needs this long for it.
const unreadSecondsMax = 255

// Nearly every response is sent by then, and what is remembered for watching it can go.
const firstLookMs = 1_000
// How many looks fit into the time that a connection may be idle.
const looks = 4

/**
 * A client may take minutes to read a long response, however slowly, as long as it keeps reading, which only the
 * system's table shows in time. So the response gets the timeout of an idle connection again and again, until the table
 * has shown no progress for minutes.
 */
export function watchLongAnswer(
  sending: Sending,
  { deadlines, clock, idleSeconds }: { deadlines: Deadlines; clock: Pick<Clock, 'monotonic'>; idleSeconds: number },
): void {
  const lookMs = (idleSeconds * 1000) / looks
  const silentMsMax = (unreadSecondsMax - idleSeconds) * 1000
  const next = deadlines.open(() => void look())
  let last: { readonly unread: number; readonly since: number } | undefined

  async function look(): Promise<void> {
    if (!sending.isUnderway()) return
    const unread = await sending.unreadBytes(lookMs / 10)
    // Where the system does not tell how much was read, the sign that comes so late is the only one.
    if (unread === undefined) return sending.allow(unreadSecondsMax)
    const now = clock.monotonic()
    if (last?.unread !== unread) last = { unread, since: now }
    if (now - last.since > silentMsMax) return
    sending.allow(idleSeconds)
    next.set(lookMs)
  }

  sending.allow(idleSeconds)
  next.set(Math.min(firstLookMs, lookMs))
}
