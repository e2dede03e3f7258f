import { GatewayError } from '../../src/base/errors.ts'
import { silentLog } from '../../src/base/log.ts'
import { BankUnavailable } from '../../src/billing/leased/bank.ts'
import type { SyncMode } from '../../src/billing/leased/journal.ts'
import { openLeasedBilling, type LeasedBilling } from '../../src/billing/leased/leased.ts'
import { Fenced } from '../../src/store/turns.ts'
import type { SimulatedDisk } from './disk.ts'
import { Killed, Life, type Loss } from './life.ts'
import type { Network } from './network.ts'
import type { SimulatedRequest } from './request.ts'
import { describe, type World } from './world.ts'

export type MachineOptions = {
  readonly world: World
  readonly network: Network
  readonly node: string
  readonly shared: boolean
  readonly sync: SyncMode
  readonly syncMsMax: number
  readonly segmentBytes: number
}

// The journal's sync interval. The loss limit is twice this, because one sync may be missed while another is under way.
const syncEveryMs = 5

/** One node: its disk, and one process after another on it. */
export class Machine {
  readonly options: MachineOptions
  disk: SimulatedDisk
  life: Life
  billing: LeasedBilling | undefined
  /** The requests of this and former processes. */
  readonly requests: SimulatedRequest[] = []
  /** Processes that go on although another has taken over. */
  readonly zombies: { readonly life: Life; readonly billing: LeasedBilling }[] = []
  isClosing = false
  #lives = 0
  /** How many of the requests were made before the current disk. */
  #before = 0

  constructor(options: MachineOptions, disk: SimulatedDisk) {
    this.options = options
    this.disk = disk
    this.life = new Life(options.node, () => {})
    this.life.end()
  }

  get isUp(): boolean {
    return this.billing !== undefined && !this.isClosing
  }

  start(): void {
    if (this.life.isAlive && !this.life.isReplaced) return
    const life = new Life(`${this.options.node}.${++this.#lives}`, (life, loss) => {
      if (life === this.life) this.kill(loss)
      else life.end()
    })
    this.life = life
    this.isClosing = false
    life.onDeath(() => this.#died(life, 'kill'))
    void this.#open(life)
  }

  /** Dies between two events: every written byte stays, or with a power cut only what was synced. */
  kill(loss: Loss): void {
    this.options.world.tell(`${this.life.name} dies: ${loss}`)
    if (loss === 'power') {
      this.#freeze(this.life, 'power')
      const { syncedWrites } = this.disk
      for (const request of this.requests.slice(this.#before)) {
        request.weaken((step) => this.#isPromised(step) || step.write <= syncedWrites)
      }
    }
    this.life.end()
    if (loss === 'power') this.disk.cutPower()
  }

  /** Starts another process with a copy of the disk, without telling this one. */
  replace(): void {
    const { life, billing } = this
    if (billing === undefined || this.isClosing) return
    this.options.world.tell(`${life.name} is replaced`)
    life.isReplaced = true
    life.isCutOff = true
    this.#freeze(life, 'kill')
    this.zombies.push({ life, billing })
    this.billing = undefined
    this.disk = this.disk.clone()
    this.#before = this.requests.length
    this.start()
  }

  async close(): Promise<void> {
    const { billing, life } = this
    if (billing === undefined) return
    this.isClosing = true
    this.options.world.tell(`${life.name} closes`)
    try {
      await billing.close()
    } catch (thrown) {
      if (life.isAlive && !isSyncFailure(thrown)) {
        this.options.world.fail(`${life.name} did not close: ${describe(thrown)}`)
      }
      return
    }
    life.end()
  }

  async #open(life: Life): Promise<void> {
    const { world, network, node, sync, segmentBytes, shared } = this.options
    const disk = this.disk.attach(life)
    const timers = { after: (ms: number, run: () => void) => world.after(ms, () => life.isAlive && run()) }
    const bank = network.connect(life, shared)
    for (;;) {
      try {
        const fatal = (why: string, cause: unknown) => this.#fatal(life, why, cause)
        const parts = { node, bank, disk, clock: world.clock, timers, log: silentLog, sync, fatal, segmentBytes }
        const billing = await openLeasedBilling(parts)
        if (life.isAlive && this.life === life) this.billing = billing
        for (const zombie of this.zombies) zombie.life.isCutOff = false
        return
      } catch (thrown) {
        if (!life.isAlive || thrown instanceof Killed) return
        if (isSyncFailure(thrown)) return this.kill('power')
        if (!(thrown instanceof BankUnavailable) && !isDiskFull(thrown)) {
          return world.fail(`${life.name} could not start: ${describe(thrown)}`)
        }
        await new Promise<void>((resolve) => timers.after(300, resolve))
      }
    }
  }

  #fatal(life: Life, why: string, cause: unknown): void {
    const { world } = this.options
    if (!life.isAlive) return
    world.tell(`${life.name} is told to stop: ${why}`)
    if (cause instanceof Fenced) {
      if (!life.isReplaced) world.fail(`${life.name} was fenced off by nobody`)
      life.end()
    } else if (isSyncFailure(cause)) {
      // The kernel may have dropped the bytes. A process takes a moment to end, and must not answer wrongly meanwhile.
      world.after(world.random.between(0, 4), () => {
        life.kill('power')
      })
    } else if (isDiskFull(cause)) {
      // Not even the reserve had room for a record: the process ends, and the next one goes by what is written.
      if (life === this.life) this.kill('kill')
      else life.end()
    } else world.fail(`${life.name} stops: ${why}: ${describe(cause)}`)
  }

  #died(life: Life, loss: Loss): void {
    this.#freeze(life, loss)
    if (life === this.life) this.billing = undefined
  }

  #isPromised({ kind }: { kind: string }): boolean {
    return this.options.sync === 'always' && (kind === 'settle' || kind === 'release')
  }

  #freeze(life: Life, loss: Loss): void {
    const { world, syncMsMax, node } = this.options
    const { syncedWrites } = this.disk
    const lossMsMax = 2 * (syncEveryMs + syncMsMax)
    const isCertain = (step: { kind: string; write: number; doneAt: number }) => {
      if (loss === 'kill' || this.#isPromised(step) || step.write <= syncedWrites) return true
      if (world.now - step.doneAt > lossMsMax) {
        world.fail(`a power cut takes from ${node} what it did ${world.now - step.doneAt} ms ago`)
      }
      return false
    }
    for (const request of this.requests) if (request.life === life) request.freeze(isCertain)
  }
}

export function isDiskFull(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'DiskFull'
}

export function isSyncFailure(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.message.includes('could not sync')
}

/** Whether a refusal means that nothing can be taken at the moment, rather than that there is no money. */
export function isOverloaded(thrown: unknown): boolean {
  return thrown instanceof GatewayError && thrown.kind === 'overloaded'
}
