import type { Clock } from '../base/clock.ts'
import { isOfferedAt, type Offer } from '../catalogue/model.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { makeFailures } from './failures.ts'
import { makeRests, type Resting } from './rests.ts'

/** One configured account at a vendor. */
export type Channel = {
  readonly id: string
  readonly vendor: Vendor
  readonly baseUrl: string
  /** Several keys of one account are used in turn. A server that needs no key is sent `localCredential`. */
  readonly credentials: readonly string[]
  /** The share of requests among channels of the same priority. */
  readonly weight: number
  /** Lower is tried first. */
  readonly priority: number
  /** Set for simulators, which are never set aside: one customer's play must not take a vendor from the others. */
  readonly isSimulator?: true
}

/** Local servers take any key, and some refuse an empty one. */
export const localCredential = 'local'

/** One way to have a model: a channel, one of its credentials, and what the model is called there. */
export type Route = {
  readonly channel: Channel
  readonly credential: string
  readonly upstreamModel: string
}

export type Channels = {
  readonly all: readonly Channel[]
  /**
   * The routes for a model, best first, with channels that keep failing behind the others; resting credentials are left
   * out. Each channel comes once. A channel whose credential was put to rest since comes again with another one, behind
   * all the others, because an account that is refused is often refused with every key.
   */
  routes(offers: readonly Offer[]): Iterable<Route>
  /** All places that offer the model, also those whose credentials rest. */
  places(offers: readonly Offer[]): readonly ChannelModel[]
  /**
   * Stops using a credential at its channel for a while: for every model if the vendor refused it, for one model if it
   * is over its rate there. Says whether the rest begins now, because several requests may have used the credential at
   * once.
   */
  rest(resting: Resting, seconds: number): boolean
  isResting(resting: Resting): boolean
  /** Until the first credential may be used again of those that rest only for being over a model's rate. */
  secondsOverRate(places: readonly ChannelModel[]): number | undefined
  /**
   * A request is sent there, which may take `longestMs`. Where the channel has been asked last for long enough, this
   * request finds out whether it still fails, and all others keep asking it last meanwhile.
   */
  asking(place: ChannelModel, longestMs: number): void
  /** The request showed nothing about the channel, for example because the client left. */
  leftOpen(place: ChannelModel): void
  /**
   * A channel failed, or did not answer, when it was asked for a model. Says whether this makes it asked last from now
   * on: that takes failures of several requests, because a single one may be more than a vendor can take.
   */
  failed(place: ChannelModel, request: string): boolean
  /** The channel has responded, be it with a refusal. */
  answered(place: ChannelModel): void
  /** Whether there is a model for which the channel is asked last. */
  isFailing(channel: Channel): boolean
  /** The vendor refused to show reasoning to the owner of this credential, and is not asked for it for a while. */
  hideReasoning(of: ChannelCredential): void
  hidesReasoning(of: ChannelCredential): boolean
}

/** A credential, at the channel that uses it. */
type ChannelCredential = Pick<Route, 'channel' | 'credential'>

/** A place: one model, at a channel that has it. */
export type ChannelModel = Pick<Route, 'channel' | 'upstreamModel'>

// After an operator has had the account verified, it takes this long at most until reasoning is asked for again; the
// price is one wasted call in ten minutes.
const hiddenMs = 10 * 60_000

export function makeChannels(all: readonly Channel[], clock: Clock, random: () => number): Channels {
  const hiddenUntil = new Map<string, number>()
  const rests = makeRests(clock)
  const failures = makeFailures(clock)
  const found = new WeakMap<readonly Offer[], readonly ChannelModel[]>()
  // Kept by model: otherwise, where embeddings and chats alternate, each of the two would always get the same key.
  const turns = new Map<string, number>()

  /** Found once per list of offers, because these channels never change. */
  function candidatesFor(offers: readonly Offer[]): readonly ChannelModel[] {
    const known = found.get(offers)
    if (known !== undefined) return known
    const now = candidates(all, offers)
    found.set(offers, now)
    return now
  }

  function nextTurn(place: ChannelModel): number {
    const { length } = place.channel.credentials
    if (length === 1) return 0
    const turn = ((turns.get(modelAt(place)) ?? 0) + 1) % length
    turns.set(modelAt(place), turn)
    return turn
  }

  function nextCredential(place: ChannelModel): string | undefined {
    const { channel, upstreamModel } = place
    const { credentials } = channel
    const turn = nextTurn(place)
    for (let i = 0; i < credentials.length; i++) {
      const credential = credentials[(turn + i) % credentials.length]
      if (credential !== undefined && !rests.isResting({ channel, credential, upstreamModel })) return credential
    }
    return undefined
  }

  function secondsOverRate(places: readonly ChannelModel[]): number | undefined {
    const routes = places.flatMap((place) => place.channel.credentials.map((credential) => ({ ...place, credential })))
    const leftMs = routes.map((route) => rests.msOverRate(route)).filter((ms) => ms > 0)
    return leftMs.length === 0 ? undefined : Math.min(...leftMs) / 1000
  }

  return {
    all,
    rest: (resting, seconds) => resting.channel.isSimulator !== true && rests.begin(resting, seconds),
    isResting: (resting) => rests.isResting(resting),
    places: candidatesFor,
    secondsOverRate,
    asking: (place, longestMs) => failures.asking(modelAt(place), longestMs),
    leftOpen: (place) => failures.leftOpen(modelAt(place)),
    failed: (place, request) => place.channel.isSimulator !== true && failures.failed(modelAt(place), request),
    answered: (place) => failures.answered(modelAt(place)),
    isFailing: ({ id }) => failures.anyOf(`${id}\n`),
    hideReasoning: (of) => void hiddenUntil.set(credentialAt(of), clock.monotonic() + hiddenMs),
    hidesReasoning: (of) => (hiddenUntil.get(credentialAt(of)) ?? 0) > clock.monotonic(),
    *routes(offers) {
      // Chosen lazily: a credential that is put to rest by the first attempt is not offered to the second.
      let left = [...candidatesFor(offers)]
      while (left.length > 0) {
        const again: ChannelModel[] = []
        while (left.length > 0) {
          const steady = left.filter((place) => !failures.isAside(modelAt(place)))
          const picked = pick(steady.length > 0 ? steady : left, random)
          left.splice(left.indexOf(picked), 1)
          const credential = nextCredential(picked)
          if (credential === undefined) continue
          yield { ...picked, credential }
          if (rests.isResting({ ...picked, credential })) again.push(picked)
        }
        left = again
      }
    },
  }
}

function credentialAt({ channel, credential }: ChannelCredential): string {
  return `${channel.id}\n${credential}`
}

function modelAt({ channel, upstreamModel }: ChannelModel): string {
  return `${channel.id}\n${upstreamModel}`
}

function candidates(all: readonly Channel[], offers: readonly Offer[]): ChannelModel[] {
  const found: ChannelModel[] = []
  for (const offer of offers) {
    const { upstreamModel } = offer
    for (const channel of all)
      if (isOfferedAt(offer, channel.id, channel.vendor.id)) found.push({ channel, upstreamModel })
  }
  return found
}

/** Picks by weight among the channels of the best priority. */
function pick(from: readonly ChannelModel[], random: () => number): ChannelModel {
  const [only] = from
  if (only !== undefined && from.length === 1) return only
  const best = Math.min(...from.map(({ channel }) => channel.priority))
  return pickByWeight(
    from.filter(({ channel }) => channel.priority === best),
    random,
  )
}

function pickByWeight(from: readonly ChannelModel[], random: () => number): ChannelModel {
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
