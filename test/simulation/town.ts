import { expect } from 'bun:test'
import type { Hold, TakeOutcome } from '../../src/billing/billing.ts'
import type { LeasedBilling } from '../../src/billing/leased/leased.ts'
import { SimulatedDisk } from './disk.ts'
import { Machine } from './machine.ts'
import { ModelBank } from './model-bank.ts'
import { Network } from './network.ts'
import { sentOf } from './request.ts'
import { World } from './world.ts'

/** One node or several on a bank, in a simulated world whose time stands still until `pass` moves it. */
export function town(options: { nodes?: number; balance?: bigint; segmentBytes?: number } = {}) {
  const world = new World(1)
  const model = new ModelBank()
  const network = new Network(world, model)
  network.latencyMsMax = 0
  network.committed = () => expect(model.breaches).toEqual([])
  model.addAccount('acc_a', options.balance ?? 1_000n, false)
  const nodes = options.nodes ?? 1
  const machines = Array.from({ length: nodes }, (_, at) => {
    const disk = new SimulatedDisk(world, { capacityBytes: 100_000, reserveBytes: 30_000, syncMsMax: 0 })
    const parts = { world, network, node: `node_${at}`, shared: nodes > 1, sync: 'interval', syncMsMax: 0 } as const
    return new Machine({ ...parts, segmentBytes: options.segmentBytes ?? 10_000 }, disk)
  })
  const [machine] = machines
  if (machine === undefined) throw new Error('no machine')
  const start = () => {
    for (const each of machines) each.start()
    pass(100)
  }
  const pass = (ms: number) => {
    world.run(world.now + ms)
    expect(world.failures).toEqual([])
  }
  return { world, model, network, machine, machines, start, pass }
}

/** The state of a promise, which can be looked at without awaiting it. */
export function watch<T>(promise: Promise<T>): { value?: T; error?: unknown } {
  const seen: { value?: T; error?: unknown } = {}
  promise.then(
    (value) => (seen.value = value),
    (error: unknown) => (seen.error = error),
  )
  return seen
}

export function up(machine: Machine | undefined): LeasedBilling {
  if (machine?.billing === undefined) throw new Error('the node is not up')
  return machine.billing
}

export function held(seen: { value?: TakeOutcome }): Hold {
  if (seen.value?.kind !== 'hold') throw new Error(`not held: ${seen.value?.kind}`)
  return seen.value.hold
}

/** Sends an attempt, which is recorded once the world has run. */
export function send(hold: Hold, id: string): { value?: unknown; error?: unknown } {
  return watch(Promise.resolve(hold.sending(sentOf(id))))
}
