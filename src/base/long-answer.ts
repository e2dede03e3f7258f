import type { Clock } from './clock.ts'
import type { Deadlines } from './deadlines.ts'

/** A response that was handed to the runtime, which closes the connection after a set time without a byte. */
export type Sending = {
  /** False once the system has the last byte and the connection waits for the next request. */
  isUnderway(): boolean
  /** Sets how long the connection may be idle, now and when it is kept alive. No effect once the response is sent. */
  allow(seconds: number): void
  unreadBytes(ageMsMax: number): Promise<number | undefined>
}

// The longest timeout that Bun accepts. Bun notices that a client reads only when a third of the system's buffer is
// free again, which is a million bytes or more, so that a slow client needs minutes for it.
const unreadSecondsMax = 255

// Nearly every response is sent by then, and what is remembered for watching it can go.
const firstLookMs = 1_000
// How many looks fit into the time that a connection may be idle.
const looks = 4

/**
 * The idle timeout that Bun was given last also applies to the connection when it is kept alive, and after the last
 * byte it cannot be changed any more. So a response that a client takes minutes to read does not get a long timeout at
 * once: it gets the timeout of an idle connection again and again, for as long as the client keeps reading.
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
    // Where the system does not tell how much was read, only the runtime's own timeout can guard the connection.
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
