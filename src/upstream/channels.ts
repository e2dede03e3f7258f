import type { Clock } from '../base/clock.ts'
import { isHadAt, type Offer } from '../catalogue/model.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { makeFailures } from './failures.ts'

/** One configured account at a vendor. */
export type Channel = {
  readonly id: string
  readonly vendor: Vendor
  readonly baseUrl: string
  /** Several keys of one account are used in turn. A server that asks for none is shown `localCredential`. */
  readonly credentials: readonly string[]
  /** Among channels of one priority, the share of requests. */
  readonly weight: number
  /** Lower is tried first. */
  readonly priority: number
  /** A simulator's credential is never at fault: one customer's play must not take the vendor away from the others. */
  readonly tireless?: true
}

/** Local servers take any key, and some refuse an empty one. */
export const localCredential = 'local'

/** One way to have a model: a channel, a key of it, and what the model is called there. */
export type Route = {
  readonly channel: Channel
  readonly credential: string
  readonly upstreamModel: string
}

export type Channels = {
  readonly all: readonly Channel[]
  /**
   * The routes for a model, best first, and those that fail time and again behind them; credentials at rest are left out. Each
   * channel comes once; those whose credential is at rest since come again with another one, behind all the others, since an
   * account that is refused often is with every key.
   */
  routes(offers: readonly Offer[]): Iterable<Route>
  /**
   * A credential that the vendor refused is not used at that channel for a while, and one that is over its rate not for that
   * model. Says whether its rest begins now: several requests may have used it at once.
   */
  rest(resting: Resting, seconds: number): boolean
  isResting(resting: Resting): boolean
  /** Until the first of the credentials at rest that are no more than over their rate for a model may be used again. */
  secondsOverRate(offers: readonly Offer[]): number | undefined
  /**
   * A request is sent there, which may take so long. Where it was asked last for long enough, this one finds out how it is, and no
   * other meanwhile.
   */
  asking(had: Had, longestMs: number): void
  /** The client left, say, before anything was found out. */
  leftOpen(had: Had): void
  /**
   * A channel failed, or did not answer, when it was asked for a model. Says whether it is asked last from now on: by several
   * requests, since one may be more than a vendor can take.
   */
  failed(had: Had, request: string): boolean
  /** It is alive, whatever it said. */
  answered(had: Had): void
  /** Whether there is a model for which the channel is asked last. */
  isFailing(channel: Channel): boolean
  /** The vendor refused to show the owner of this credential what its models think, and is not asked to for a while. */
  hideThoughts(of: Shown): void
  hidesThoughts(of: Shown): boolean
}

/** A credential, at the channel where it is shown. */
type Shown = Pick<Route, 'channel' | 'credential'>

/** A model, at a channel that has it. */
type Had = Pick<Route, 'channel' | 'upstreamModel'>

/** A credential; with a model, for that one alone. */
export type Resting = Shown & Partial<Pick<Route, 'upstreamModel'>>

// A vendor may say "tomorrow"; whether that is still true is worth one call a minute.
const restSecondsMax = 60
// So long an operator waits at most who has had the account verified; and one call in ten minutes is made for nothing.
const hiddenMs = 10 * 60_000

export function makeChannels(all: readonly Channel[], clock: Clock, random: () => number): Channels {
  // By channel: the same key may be in use at several, and local servers all take the same one.
  const restsUntil = new Map<string, Map<string, number>>()
  const hiddenUntil = new Map<string, number>()
  const failures = makeFailures(clock)
  const found = new WeakMap<readonly Offer[], readonly Had[]>()
  // By model: who embeds and chats by turns would else have one key for the one and another for the other.
  const turns = new Map<string, number>()

  function isResting(resting: Resting): boolean {
    const rests = restsUntil.get(resting.channel.id)
    if (rests === undefined) return false
    const until = Math.max(rests.get(resting.credential) ?? 0, rests.get(nameOf(resting)) ?? 0)
    return until > clock.monotonic()
  }

  function rest(resting: Resting, seconds: number): boolean {
    const { channel } = resting
    if (channel.tireless === true) return false
    const hasBegun = !isResting(resting)
    const name = nameOf(resting)
    const ofChannel = restsUntil.get(channel.id) ?? new Map<string, number>()
    restsUntil.set(channel.id, ofChannel)
    const until = clock.monotonic() + Math.min(seconds, restSecondsMax) * 1000
    // A call that was under way may be told a shorter one.
    ofChannel.set(name, Math.max(until, ofChannel.get(name) ?? 0))
    return hasBegun
  }

  /** Which channels offer a model does not change while there are these channels. */
  function candidatesFor(offers: readonly Offer[]): readonly Had[] {
    const known = found.get(offers)
    if (known !== undefined) return known
    const now = candidates(all, offers)
    found.set(offers, now)
    return now
  }

  function nextTurn(had: Had): number {
    const { length } = had.channel.credentials
    if (length === 1) return 0
    const turn = ((turns.get(modelAt(had)) ?? 0) + 1) % length
    turns.set(modelAt(had), turn)
    return turn
  }

  function nextCredential(had: Had): string | undefined {
    const { channel, upstreamModel } = had
    const { credentials } = channel
    const turn = nextTurn(had)
    for (let i = 0; i < credentials.length; i++) {
      const credential = credentials[(turn + i) % credentials.length]
      if (credential !== undefined && !isResting({ channel, credential, upstreamModel })) return credential
    }
    return undefined
  }

  function secondsOverRate(offers: readonly Offer[]): number | undefined {
    let leftMs = Infinity
    for (const { channel, upstreamModel } of candidatesFor(offers)) {
      const rests = restsUntil.get(channel.id)
      for (const credential of channel.credentials) {
        const until = rests?.get(nameOf({ channel, credential, upstreamModel })) ?? 0
        const isRefused = (rests?.get(credential) ?? 0) >= until
        if (!isRefused && until > clock.monotonic()) leftMs = Math.min(leftMs, until - clock.monotonic())
      }
    }
    return leftMs === Infinity ? undefined : leftMs / 1000
  }

  return {
    all,
    isResting,
    secondsOverRate,
    rest,
    asking: (had, longestMs) => failures.asking(modelAt(had), longestMs),
    leftOpen: (had) => failures.leftOpen(modelAt(had)),
    failed: (had, request) => had.channel.tireless !== true && failures.failed(modelAt(had), request),
    answered: (had) => failures.answered(modelAt(had)),
    isFailing: ({ id }) => failures.anyOf(`${id}\n`),
    hideThoughts: (of) => void hiddenUntil.set(placeOf(of), clock.monotonic() + hiddenMs),
    hidesThoughts: (of) => (hiddenUntil.get(placeOf(of)) ?? 0) > clock.monotonic(),
    *routes(offers) {
      // Chosen lazily: a credential that is put to rest by the first attempt is not offered to the second.
      let left = [...candidatesFor(offers)]
      while (left.length > 0) {
        const again: Had[] = []
        while (left.length > 0) {
          const steady = left.filter((had) => !failures.isAside(modelAt(had)))
          const picked = pick(steady.length > 0 ? steady : left, random)
          left.splice(left.indexOf(picked), 1)
          const credential = nextCredential(picked)
          if (credential === undefined) continue
          yield { ...picked, credential }
          if (isResting({ ...picked, credential })) again.push(picked)
        }
        left = again
      }
    },
  }
}

function placeOf({ channel, credential }: Shown): string {
  return `${channel.id}\n${credential}`
}

function modelAt({ channel, upstreamModel }: Had): string {
  return `${channel.id}\n${upstreamModel}`
}

/** No credential has a line end in it. */
function nameOf({ credential, upstreamModel }: Resting): string {
  return upstreamModel === undefined ? credential : `${credential}\n${upstreamModel}`
}

function candidates(all: readonly Channel[], offers: readonly Offer[]): Had[] {
  const found: Had[] = []
  for (const offer of offers) {
    const { upstreamModel } = offer
    for (const channel of all) if (isHadAt(offer, channel.id, channel.vendor.id)) found.push({ channel, upstreamModel })
  }
  return found
}

/** Of the best priority, by weight. */
function pick(from: readonly Had[], random: () => number): Had {
  const [only] = from
  if (only !== undefined && from.length === 1) return only
  const best = Math.min(...from.map(({ channel }) => channel.priority))
  return pickByWeight(
    from.filter(({ channel }) => channel.priority === best),
    random,
  )
}

function pickByWeight(from: readonly Had[], random: () => number): Had {
  const total = from.reduce((sum, { channel }) => sum + channel.weight, 0)
  let point = random() * total
  for (const candidate of from) {
    point -= candidate.channel.weight
    if (point < 0) return candidate
  }
  const last = from.at(-1)
  if (last === undefined) throw new Error('nothing to pick from')
  return last
}
