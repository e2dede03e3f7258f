import type { Clock } from '../../base/clock.ts'
import { NamedCounts } from '../../base/named-counts.ts'
import type { Lane, PassOver } from '../../store/outbox.ts'

/** How a delivery went, as far as it matters for the next one on the same lane. */
export type Ending = 'answered' | 'silent' | 'abandoned'

/** The permission to make one delivery; it is given back exactly once. */
export type Place = { leave(ending: Ending): void }

export type GateLimits = {
  readonly inFlightMax: number
  readonly perHostMax: number
  /**
   * How many of all places are open to lanes that have not answered lately, and how many of those to one account: a
   * thousand tarpits, each at a host of its own, then delay only each other.
   */
  readonly unprovenMax: number
  readonly unprovenPerAccountMax: number
  /** After this many silent deliveries in a row, a lane rests. */
  readonly silentMax: number
  readonly restMs: number
  /** Each probe that stays silent doubles the rest, up to this. */
  readonly restMsMax: number
}

export const gateLimits: GateLimits = {
  inFlightMax: 100,
  perHostMax: 10,
  unprovenMax: 50,
  unprovenPerAccountMax: 25,
  silentMax: 5,
  restMs: 30_000,
  restMsMax: 5 * 60_000,
}

type State = {
  readonly lane: Lane
  inFlight: number
  /** Whether the last delivery was answered. */
  proven: boolean
  silent: number
  /** Set until a probe is answered. */
  rest: { ms: number; until: number } | undefined
}

// A lane takes a few hundred bytes, and is named in each search for due events; one that is forgotten only has to prove
// itself again.
const lanesKept = 2_000

/** Decides which lanes may be delivered to now. It lives in the memory of one node, so every bound is per node. */
export class Gate {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #limits: GateLimits
  /** In the order in which their last deliveries ended. */
  readonly #lanes = new Map<string, State>()
  readonly #inFlight = new NamedCounts()

  constructor(clock: Pick<Clock, 'monotonic'>, limits: GateLimits = gateLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** A place, or undefined where there is none now. */
  enter(lane: Lane): Place | undefined {
    const known = this.#lanes.get(nameOf(lane))
    const state = known ?? { lane, inFlight: 0, proven: false, silent: 0, rest: undefined }
    const counted = ['node', `host ${lane.host}`, ...(state.proven ? [] : ['unproven', `unproven ${lane.accountId}`])]
    if (this.#isFull() || this.#isHostFull(lane.host) || this.#isResting(state)) return undefined
    if (!state.proven && (this.#isUnprovenFull() || this.#isAccountFull(lane.accountId))) return undefined
    const isProbe = state.rest !== undefined
    if (known === undefined) this.#lanes.set(nameOf(lane), state)
    state.inFlight++
    for (const name of counted) this.#inFlight.add(name, 1)
    return {
      leave: (ending) => {
        state.inFlight--
        for (const name of counted) this.#inFlight.add(name, -1)
        this.#learn(state, ending, isProbe)
      },
    }
  }

  /** What a search for the next deliveries leaves out; undefined where there is no place at all. */
  passOver(): PassOver | undefined {
    if (this.#isFull()) return undefined
    const states = [...this.#lanes.values()]
    const hosts = [...new Set(states.filter(({ inFlight }) => inFlight > 0).map(({ lane }) => lane.host))]
    const accounts = [...new Set(states.map(({ lane }) => lane.accountId))]
    const unproven = this.#isUnprovenFull() ? 'all' : accounts.filter((account) => this.#isAccountFull(account))
    const lanesWhere = (holds: (state: State) => boolean) => states.filter(holds).map(({ lane }) => lane)
    // Every lane that rests is named: events that are found and not admitted would hide those of other lanes.
    return {
      hosts: hosts.filter((host) => this.#isHostFull(host)),
      lanes: lanesWhere((state) => this.#isResting(state)),
      unproven,
      proven: unproven.length === 0 ? [] : lanesWhere(({ proven }) => proven),
    }
  }

  /** The number of remembered lanes, for tests of what a flood of hosts costs. */
  get size(): number {
    return this.#lanes.size
  }

  #learn(state: State, ending: Ending, isProbe: boolean): void {
    const { restMs, restMsMax, silentMax } = this.#limits
    const now = this.#clock.monotonic()
    if (ending === 'answered') {
      state.proven = true
      state.silent = 0
      state.rest = undefined
    }
    if (ending === 'silent') {
      state.proven = false
      state.silent++
      // Deliveries that began before the lane's rest say nothing new.
      if (state.rest === undefined && state.silent >= silentMax) state.rest = { ms: restMs, until: now + restMs }
      else if (state.rest !== undefined && isProbe) {
        const ms = Math.min(state.rest.ms * 2, restMsMax)
        state.rest = { ms, until: now + ms }
      }
    }
    this.#remember(state)
  }

  #remember(state: State): void {
    const name = nameOf(state.lane)
    this.#lanes.delete(name)
    const isPlain = !state.proven && state.silent === 0 && state.inFlight === 0
    if (!isPlain) this.#lanes.set(name, state)
    for (const [oldest, { inFlight }] of this.#lanes) {
      if (this.#lanes.size <= lanesKept) return
      if (inFlight === 0) this.#lanes.delete(oldest)
    }
  }

  #isFull(): boolean {
    return this.#inFlight.of('node') >= this.#limits.inFlightMax
  }

  #isHostFull(host: string): boolean {
    return this.#inFlight.of(`host ${host}`) >= this.#limits.perHostMax
  }

  #isUnprovenFull(): boolean {
    return this.#inFlight.of('unproven') >= this.#limits.unprovenMax
  }

  #isAccountFull(accountId: string): boolean {
    return this.#inFlight.of(`unproven ${accountId}`) >= this.#limits.unprovenPerAccountMax
  }

  /** Once its rest is over, a lane gets one probe at a time. */
  #isResting({ rest, inFlight }: State): boolean {
    return rest !== undefined && (this.#clock.monotonic() < rest.until || inFlight > 0)
  }
}

function nameOf({ accountId, host }: Lane): string {
  return `${accountId} ${host}`
}
