import type { Clock } from '../base/clock.ts'
import type { Route } from './channels.ts'

// A vendor may say "tomorrow"; finding out whether that is still true is worth one call a minute.
const restSecondsMax = 60

/** A credential at a channel; with `upstreamModel`, for that model alone. */
export type Resting = Pick<Route, 'channel' | 'credential'> & Partial<Pick<Route, 'upstreamModel'>>

/** Tracks which credentials rest: for every model if the vendor refused them, for one model if over its rate there. */
export type Rests = {
  /** Says whether the rest begins now, because several requests may have used the credential at once. */
  begin(resting: Resting, seconds: number): boolean
  isResting(resting: Resting): boolean
  /** How long the credential still rests only for being over the model's rate; 0 where it does not. */
  msOverRate(route: Route): number
}

export function makeRests(clock: Clock): Rests {
  // Kept by channel, because the same key may be in use at several, and all local servers take the same one.
  const restsUntil = new Map<string, Map<string, number>>()

  function isResting(resting: Resting): boolean {
    const rests = restsUntil.get(resting.channel.id)
    if (rests === undefined) return false
    const until = Math.max(rests.get(resting.credential) ?? 0, rests.get(nameOf(resting)) ?? 0)
    return until > clock.monotonic()
  }

  return {
    isResting,
    begin(resting, seconds) {
      const { channel } = resting
      const hasBegun = !isResting(resting)
      const name = nameOf(resting)
      const ofChannel = restsUntil.get(channel.id) ?? new Map<string, number>()
      restsUntil.set(channel.id, ofChannel)
      const until = clock.monotonic() + Math.min(seconds, restSecondsMax) * 1000
      // A call that was already under way may be told a shorter rest.
      ofChannel.set(name, Math.max(until, ofChannel.get(name) ?? 0))
      return hasBegun
    },
    msOverRate(route) {
      const rests = restsUntil.get(route.channel.id)
      const until = rests?.get(nameOf(route)) ?? 0
      const isRefused = (rests?.get(route.credential) ?? 0) >= until
      return isRefused ? 0 : Math.max(0, until - clock.monotonic())
    },
  }
}

/** Names cannot be confused, because no credential has a line end in it. */
function nameOf({ credential, upstreamModel }: Resting): string {
  return upstreamModel === undefined ? credential : `${credential}\n${upstreamModel}`
}
