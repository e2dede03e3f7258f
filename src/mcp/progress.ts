import type { Clock, Timers } from '../base/clock.ts'

/** Tells a waiting client how far its call is. Sends nothing if the client gave no progress token. */
export type Progress = {
  readonly isWanted: boolean
  /** Sends the message at once. */
  tell(message: string): void
  /** Adds a piece of a growing text. Pieces are joined and sent a few times a second. */
  add(text: string): void
  /**
   * Reports regularly that the work goes on, because clients give up on silence: with the message, or without one if a
   * text is being sent. Sends the rest of the text at the end.
   */
  during<T>(message: string | undefined, work: () => Promise<T>): Promise<T>
}

export type SendProgress = (progress: number, message?: string) => void

/** A reader can follow text that moves four times a second; more events would be of no use. */
const pieceMs = 250
/** Clients usually wait a minute for a sign of life, some proxies half a minute. */
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
