import type { Timers } from '../base/clock.ts'
import type { Opening } from '../base/closing.ts'
import { Later } from '../base/later.ts'
import { watchLoop } from './loop-delay.ts'
import { makeReaders } from './read.ts'
import type { Standing } from './standing.ts'
import { Tally } from './tally.ts'

export type Telemetry = {
  readonly tally: Tally
  /** Every metric as text. */
  scrape(standing: Standing): Promise<{ readonly text: string; readonly contentType: string }>
}

/** Without scrapes this costs nothing: the registry is loaded, and the event loop watched, from the first scrape on. */
export function openTelemetry(parts: { version: string; timers: Timers; closing: Opening<'telemetry'> }): Telemetry {
  const { version, timers, closing } = parts
  const tally = new Tally()
  const loop = watchLoop(timers)
  const state: { isClosed: boolean; standing: Standing | undefined } = { isClosed: false, standing: undefined }
  closing.opened('telemetry', () => {
    state.isClosed = true
    loop.end()
  })
  const registry = new Later(async () => {
    const { makeRegistry } = await import('./registry.ts')
    return makeRegistry(makeReaders({ tally, version, loopDelay: loop.late, standing }))
  })

  function standing(): Standing {
    if (state.standing === undefined) throw new Error('read outside of a scrape')
    return state.standing
  }

  return {
    tally,
    async scrape(current) {
      const made = await registry.get()
      if (!state.isClosed) loop.begin()
      // `metrics` reads every value before it returns its promise, so no other scrape can come in between.
      state.standing = current
      const text = made.metrics()
      state.standing = undefined
      return { text: await text, contentType: made.contentType }
    },
  }
}
