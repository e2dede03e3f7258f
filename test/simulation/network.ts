import { BankUnavailable, type Bank } from '../../src/billing/leased/bank.ts'
import type { Life } from './life.ts'
import type { ModelBank } from './model-bank.ts'
import type { World } from './world.ts'

/** The network between the nodes and the bank, and its faults. */
export class Network {
  readonly #world: World
  readonly #model: ModelBank
  readonly #listeners: { readonly life: Life; readonly listen: (accountId: string) => void }[] = []
  /** Probabilities for each call. */
  losesCall = 0
  losesAnswer = 0
  /** The probability that a call arrives only after its caller has given up. */
  isLate = 0
  kills = 0
  latencyMsMax = 20
  /** Nothing gets through until this time. */
  downUntil = 0
  /** Called after each commit. */
  committed: () => void = () => {}

  constructor(world: World, model: ModelBank) {
    this.#world = world
    this.#model = model
  }

  /**
   * The bank as one process reaches it. `shared` means that there are other nodes, which can be asked to return leases.
   */
  connect(life: Life, shared: boolean): Bank {
    const model = this.#model
    return {
      // So few that a turn sometimes leaves some for the next.
      postingsPerTurn: 5,
      open: (node, holdIds) => this.#call(life, 'open', () => model.open(node, holdIds)),
      turn: (identity, turn) => this.#call(life, `turn ${turn.number}`, () => model.turn(identity, turn)),
      resolveLostTurn: (identity, unknown) =>
        this.#call(life, 'resolveLostTurn', () => model.standing(identity, unknown)),
      ...(shared && {
        recall: (accountId: string) => this.#recall(accountId),
        onRecall: (listen: (accountId: string) => void) => void this.#listeners.push({ life, listen }),
      }),
      close: () => Promise.resolve(),
    }
  }

  #call<T>(life: Life, what: string, work: () => T): Promise<T> {
    const world = this.#world
    const { random } = world
    const there = random.between(0, this.latencyMsMax)
    const back = random.between(0, this.latencyMsMax)
    const patienceMs = 3 * this.latencyMsMax + 10
    const isLost = random.chance(this.losesCall)
    const losesAnswer = random.chance(this.losesAnswer)
    const isLate = what !== 'open' && random.chance(this.isLate)
    const killsAt = random.chance(this.kills) ? random.pick(['leaving', 'landed'] as const) : undefined

    return new Promise((resolve, reject) => {
      const fail = (afterMs: number) =>
        world.after(afterMs, () => life.isAlive && reject(new BankUnavailable(new Error(what))))
      if (killsAt === 'leaving') this.#kill(life, what)
      world.after(there + (isLate ? patienceMs + random.between(0, 2_000) : 0), () => {
        // An open that arrived after its successor's would fence off a healthy process, which would only restart.
        if (!life.isAlive && (what === 'open' || random.chance(0.5))) return
        if (isLost || life.isCutOff || world.now < this.downUntil) return fail(back)
        const outcome = attempt(work)
        world.tell(`${life.name}: ${what} lands${'error' in outcome ? ', refused' : ''}`)
        this.committed()
        if (killsAt === 'landed') this.#kill(life, what)
        if (isLate) return
        if (losesAnswer) return fail(back)
        world.after(back, () => {
          if (!life.isAlive) return
          life.isRefused ||= 'error' in outcome
          if ('error' in outcome) reject(outcome.error)
          else resolve(outcome.result)
        })
      })
      if (isLate) fail(patienceMs)
    })
  }

  #kill(life: Life, what: string): void {
    this.#world.tell(`${life.name} is struck around ${what}`)
    life.kill(this.#world.random.pick(['kill', 'power']))
  }

  #recall(accountId: string): Promise<void> {
    const { random } = this.#world
    for (const { life, listen } of this.#listeners) {
      if (random.chance(this.losesCall)) continue
      this.#world.after(random.between(1, 20), () => life.isAlive && listen(accountId))
    }
    return Promise.resolve()
  }
}

function attempt<T>(work: () => T): { result: T } | { error: Error } {
  try {
    return { result: work() }
  } catch (thrown) {
    return { error: thrown instanceof Error ? thrown : new Error(String(thrown)) }
  }
}
