import type { Clock, Timers } from '../base/clock.ts'

/** Tells a waiting client how far its call is. Without a token nobody listens, and nothing is sent. */
export type Progress = {
  readonly isWanted: boolean
  /** Now. */
  tell(message: string): void
  /** A piece of a text that grows: pieces are put together and sent a few times a second. */
  add(text: string): void
  /**
   * While the work lasts, says that it does, since clients give up on silence: in words, unless a text is on its way. What is
   * left of a text is sent at its end.
   */
  during<T>(message: string | undefined, work: () => Promise<T>): Promise<T>
}

export type SendProgress = (progress: number, message?: string) => void

/** A reader follows text that moves four times a second; more would be events for nobody. */
const pieceMs = 250
/** The usual patience of clients is a minute, that of some proxies half of one. */
const aliveMs = 10_000

export type ProgressParts = { readonly clock: Pick<Clock, 'monotonic'>; readonly timers: Timers }

export function makeProgress(send: SendProgress | undefined, { clock, timers }: ProgressParts): Progress {
  if (send === undefined) return { isWanted: false, tell() {}, add() {}, during: (_, work) => work() }
  let count = 0
  let pending = ''
  let sentAt = clock.monotonic()

  const say = (message?: string, units = 1) => {
    count += units
    sentAt = clock.monotonic()
    send(count, message)
  }
  const flush = () => {
    if (pending === '') return
    const text = pending
    pending = ''
    say(text, text.length)
  }

  return {
    isWanted: true,
    tell(message) {
      flush()
      say(message)
    },
    add(text) {
      pending += text
      if (clock.monotonic() - sentAt >= pieceMs) flush()
    },
    async during(message, work) {
      const startedAt = clock.monotonic()
      const tellAgain = () => {
        const seconds = Math.round((clock.monotonic() - startedAt) / 1000)
        flush()
        say(message === undefined ? undefined : `${message} (${seconds} s)`)
        callOff = timers.after(aliveMs, tellAgain)
      }
      let callOff = timers.after(aliveMs, tellAgain)
      try {
        return await work()
      } finally {
        callOff()
        flush()
      }
    },
  }
}
