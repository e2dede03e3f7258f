import type { Clock, Timers } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { hourOf } from './names.ts'
import { reasonOf, type ArtifactStore } from './store.ts'

const everyMs = 10 * 60_000
const firstMs = 60_000
// Deletes in small steps with pauses, so that the results of a whole night do not keep other work waiting.
const stepMax = 100
const pauseMs = 1_000
// A client that opened a link in its last second still gets the result.
const graceMs = 10 * 60_000

/** Deletes expired results, from time to time and in small steps. The returned function ends it. */
export function startSweeper(parts: { store: ArtifactStore; clock: Clock; timers: Timers; log: Log }) {
  const { store, clock, timers, log } = parts
  let running = Promise.resolve()
  const stop = new AbortController()
  let callOff = timers.after(firstMs, run)

  function run(): void {
    running = step()
  }

  async function step(): Promise<void> {
    let nextMs = everyMs
    try {
      const left = await store.sweep(hourOf(clock.now() - graceMs), stepMax, stop.signal)
      if (left === 'more') nextMs = pauseMs
    } catch (thrown) {
      if (!stop.signal.aborted) log.warn({ cause: reasonOf(thrown) }, 'expired results cannot be deleted at the moment')
    }
    if (!stop.signal.aborted) callOff = timers.after(nextMs, run)
  }

  return async (): Promise<void> => {
    stop.abort()
    callOff()
    await running
  }
}
