import type { Timers } from '../../src/base/clock.ts'

/** Timers that fire when the test says so. */
export function handTimers(): Timers & { readonly waiting: readonly number[]; fire(): void } {
  let pending: { ms: number; run: () => void }[] = []
  return {
    after(ms, run) {
      const timer = { ms, run }
      pending.push(timer)
      return () => {
        pending = pending.filter((other) => other !== timer)
      }
    },
    get waiting() {
      return pending.map(({ ms }) => ms)
    },
    fire() {
      const due = pending
      pending = []
      for (const { run } of due) run()
    },
  }
}
