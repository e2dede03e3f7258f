import type { Nano } from '../base/money.ts'
import { Buckets } from './buckets.ts'
import { noRoute, other, type AttemptOutcome, type TokenKind } from './names.ts'

/** The parts of an answer's usage that are counted here. */
export type Used = { readonly [K in TokenKind]?: number } & {
  readonly character?: number
  readonly webSearch?: number
  readonly images?: { readonly count: number }
  readonly video?: { readonly seconds: number; readonly inCredits?: true }
}

type Asked = { readonly capability: string; readonly model: string }

type Attempted = {
  readonly channel: string
  readonly vendor: string
  readonly status: number
  readonly vendorCost: Nano
  readonly delivered: boolean
}

type Ending = {
  readonly status: number
  readonly streamed: boolean
  readonly durationMs: number
  readonly attempts: readonly Attempted[]
}

type Sold = { readonly charged: Nano; readonly usage: Used }

type NamedRoute = { readonly method: string; readonly path: string }

// From a cached word to the longest video.
const durationBoundsMs = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1.8e6]
// More than a catalogue or a configuration file has. Further names are counted together as `other`.
const namesMax = 1_000

/**
 * What happened since this node began, in plain numbers. It is called for every request, so it only adds: 0.1 µs for a
 * chat, measured. Labels and text are made at a scrape.
 */
export class Tally {
  readonly capabilities = new Map<string, CapabilityTally>()
  readonly channels = new Map<string, ChannelTally>()
  readonly responses = new Map<string, Map<number, number>>()
  readonly refusals = new Map<string, Map<number, number>>()
  readonly tasksEnded = new Map<string, Map<string, number>>()
  readonly deliveries = new Map<string, number>()
  /** Shown from zero on: if the series first appeared with a 1, scrapers would not see that increase. */
  readonly reloads = { accepted: 0, rejected: 0 }
  readonly #byRoute = new Map<NamedRoute | undefined, Map<number, number>>()
  readonly #ofAdmitted = new WeakSet()

  /** An admitted request has ended, whether or not anything was sold. */
  ended(asked: Asked, ending: Ending, sold?: Sold): void {
    const { durationMs, attempts } = ending
    const capability = this.#capability(asked.capability)
    const model = modelIn(capability, asked.model)
    const statusClass = Math.trunc(ending.status / 100) - 1
    model.byClass[statusClass] = (model.byClass[statusClass] ?? 0) + 1
    model.ms += durationMs
    const durations = ending.streamed ? capability.streamed : capability.whole
    durations.add(durationMs)
    for (const attempt of attempts) {
      this.attempted(attempt)
      if (attempt.vendorCost > 0n) model.costNano += Number(attempt.vendorCost)
    }
    if (sold !== undefined) addSale(model, sold)
  }

  /** Counts one call to a vendor. To be called only for attempts that are not part of an ending. */
  attempted(attempt: Attempted): void {
    const { channel, vendor } = attempt
    let tally = this.channels.get(channel)
    if (tally === undefined) {
      const isRoom = this.channels.size < namesMax
      tally = this.channels.get(isRoom ? channel : other) ?? new ChannelTally(isRoom ? vendor : other)
      this.channels.set(isRoom ? channel : other, tally)
    }
    tally.outcomes[outcomeOf(attempt)]++
  }

  /** Adds a vendor's cost that became known only after its request was counted. */
  costLate(asked: Asked, cost: Nano): void {
    if (cost > 0n) modelIn(this.#capability(asked.capability), asked.model).costNano += Number(cost)
  }

  /** A request was answered. `route` is undefined if the request matched none. */
  answered(route: NamedRoute | undefined, status: number): void {
    let statuses = this.#byRoute.get(route)
    if (statuses === undefined) {
      // Routes of two ports may have the same name, and are counted together.
      statuses = statusesOf(this.responses, nameOf(route))
      this.#byRoute.set(route, statuses)
    }
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }

  /** A request was answered with an error. That of an admitted request is counted by its ending, and is no refusal. */
  refused(route: NamedRoute | undefined, status: number, thrown: unknown): void {
    if (isObject(thrown) && this.#ofAdmitted.has(thrown)) return
    const statuses = statusesOf(this.refusals, nameOf(route))
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }

  /** Remembers the error of an admitted request, because the same error then reaches the edge and `refused`. */
  failed(thrown: unknown): void {
    if (isObject(thrown)) this.#ofAdmitted.add(thrown)
  }

  taskEnded(model: string, state: string): void {
    const name = this.tasksEnded.has(model) || this.tasksEnded.size < namesMax ? model : other
    const states = this.tasksEnded.get(name) ?? new Map<string, number>()
    this.tasksEnded.set(name, states)
    states.set(state, (states.get(state) ?? 0) + 1)
  }

  /** Counts an attempt to deliver a webhook. `outcome` is what follows from it. */
  delivered(outcome: string): void {
    this.deliveries.set(outcome, (this.deliveries.get(outcome) ?? 0) + 1)
  }

  /** A changed configuration was read. */
  reloaded(outcome: 'accepted' | 'rejected'): void {
    this.reloads[outcome]++
  }

  #capability(name: string): CapabilityTally {
    let tally = this.capabilities.get(name)
    if (tally === undefined) {
      tally = new CapabilityTally()
      this.capabilities.set(name, tally)
    }
    return tally
  }
}

class CapabilityTally {
  readonly whole = new Buckets(durationBoundsMs)
  readonly streamed = new Buckets(durationBoundsMs)
  readonly models = new Map<string, ModelTally>()
}

export class ModelTally {
  readonly byClass = [0, 0, 0, 0, 0]
  ms = 0
  /** Whole numbers: exact up to nine million dollars. */
  chargedNano = 0
  costNano = 0
  characters = 0
  images = 0
  videoSeconds = 0
  webSearches = 0
  readonly tokens: { [K in TokenKind]: number } = {
    input: 0,
    cachedInput: 0,
    cacheWrite: 0,
    cacheWriteHour: 0,
    imageInput: 0,
    audioInput: 0,
    output: 0,
    imageOutput: 0,
    audioOutput: 0,
    videoToken: 0,
  }
}

class ChannelTally {
  readonly vendor: string
  readonly outcomes: { [O in AttemptOutcome]: number }

  constructor(vendor: string) {
    this.vendor = vendor
    this.outcomes = { delivered: 0, unused: 0, refused: 0, limited: 0, failed: 0, unanswered: 0 }
  }
}

function modelIn({ models }: CapabilityTally, id: string): ModelTally {
  let tally = models.get(id)
  if (tally === undefined) {
    const name = models.size < namesMax ? id : other
    tally = models.get(name) ?? new ModelTally()
    models.set(name, tally)
  }
  return tally
}

/** Field by field, which takes 20 ns; a loop over the kinds takes 120. */
function addSale(model: ModelTally, { charged, usage }: Sold): void {
  const { tokens } = model
  model.chargedNano += Number(charged)
  tokens.input += usage.input ?? 0
  tokens.cachedInput += usage.cachedInput ?? 0
  tokens.cacheWrite += usage.cacheWrite ?? 0
  tokens.cacheWriteHour += usage.cacheWriteHour ?? 0
  tokens.imageInput += usage.imageInput ?? 0
  tokens.audioInput += usage.audioInput ?? 0
  tokens.output += usage.output ?? 0
  tokens.imageOutput += usage.imageOutput ?? 0
  tokens.audioOutput += usage.audioOutput ?? 0
  model.characters += usage.character ?? 0
  model.webSearches += usage.webSearch ?? 0
  const { images, video } = usage
  if (images !== undefined) model.images += images.count
  if (video !== undefined) model.videoSeconds += video.seconds
  // A vendor's credits are in the same field, but are no tokens.
  if (video?.inCredits !== true) tokens.videoToken += usage.videoToken ?? 0
}

function outcomeOf({ delivered, status }: Attempted): AttemptOutcome {
  if (delivered) return 'delivered'
  if (status === 0) return 'unanswered'
  if (status === 429) return 'limited'
  if (status >= 500) return 'failed'
  return status >= 400 ? 'refused' : 'unused'
}

function statusesOf(routes: Map<string, Map<number, number>>, name: string): Map<number, number> {
  const known = routes.get(name) ?? new Map<number, number>()
  routes.set(name, known)
  return known
}

function nameOf(route: NamedRoute | undefined): string {
  return route === undefined ? noRoute : `${route.method} ${route.path}`
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
