import type { Timers } from '../base/clock.ts'
import { Buckets } from './buckets.ts'

const everyMs = 20
const boundsMs = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500]

/** How late a timer comes because something else kept the loop busy. */
export type LoopDelay = { readonly late: Buckets; begin(): void; end(): void }

/** Samples with a timer, so that anything that blocks the loop for longer than `everyMs` shows. */
export function watchLoop(timers: Timers): LoopDelay {
  const late = new Buckets(boundsMs)
  let callOff: (() => void) | undefined

  function sampleLater(): void {
    const dueAt = performance.now() + everyMs
    callOff = timers.after(everyMs, () => {
      late.add(Math.max(0, performance.now() - dueAt))
      sampleLater()
    })
  }

  return {
    late,
    begin() {
      if (callOff === undefined) sampleLater()
    },
    end() {
      callOff?.()
      callOff = undefined
    },
  }
}
