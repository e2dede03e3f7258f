import { recoverJournal } from '../../src/billing/leased/journal.ts'
import { replay } from '../../src/billing/leased/replay.ts'
import { Customers } from './customer.ts'
import { SimulatedDisk } from './disk.ts'
import { Life } from './life.ts'
import { Machine } from './machine.ts'
import { ModelBank } from './model-bank.ts'
import { Network } from './network.ts'
import { World } from './world.ts'

export type Outcome = {
  readonly failures: readonly string[]
  readonly story: readonly string[]
  readonly counts: Readonly<Record<string, number>>
}

type Parts = { world: World; model: ModelBank; network: Network; machines: Machine[]; customers: Customers }

// Enough time for every retry, recall and idle sweep.
const calmMs = 15_000

/**
 * A random history of some nodes and their customers, with every fault that can occur; then calm, and the final checks.
 */
export function simulate(seed: number): Outcome {
  const parts = build(seed)
  const { world, machines, customers } = parts
  const { random } = world
  for (const machine of machines) machine.start()
  world.run(500)

  const endsAt = world.now + random.between(1_000, 6_000)
  for (let left = random.between(10, 60); left > 0; left--) {
    customers.inStep(random.between(0, endsAt - world.now), () => arrive(parts))
  }
  // Sometimes many requests arrive at once.
  for (let bursts = random.pick([0, 0, 1, 3]); bursts > 0; bursts--) {
    const at = random.between(0, endsAt - world.now)
    for (let left = random.between(5, 30); left > 0; left--)
      customers.inStep(at + random.between(0, 20), () => arrive(parts))
  }
  scheduleTrouble(parts, endsAt)
  world.run(endsAt)
  calmDown(parts)
  world.run(world.now + calmMs)
  customers.checkAnswered()
  if (world.failures.length === 0) finish(parts)
  const counts = { ...customers.counts, booked: parts.model.booked.size }
  return { failures: world.failures, story: world.story(60), counts }
}

function build(seed: number): Parts {
  const world = new World(seed)
  const { random } = world
  const model = new ModelBank()
  const network = new Network(world, model)
  const customers = new Customers(world, model)
  network.committed = () => {
    for (const breach of model.breaches.splice(0)) world.fail(breach)
    customers.look()
  }
  network.latencyMsMax = random.pick([2, 20, 200])
  for (let at = random.between(1, 3); at > 0; at--) {
    const balance = random.pick([0, 90, 1_000, 20_000, 1_000_000])
    model.addAccount(`acc_${at}`, BigInt(balance), random.chance(0.15))
  }
  const nodes = random.pick([1, 1, 2, 3])
  const shared = nodes > 1 || random.chance(0.2)
  const sync = random.pick(['interval', 'always'] as const)
  const syncMsMax = random.pick([1, 6, 40, 120])
  const segmentBytes = random.pick([600, 3_000, 12_000, 1_000_000])
  const machines: Machine[] = []
  for (let at = 1; at <= nodes; at++) {
    const disk = new SimulatedDisk(world, { capacityBytes: 1_000_000, reserveBytes: 300_000, syncMsMax })
    machines.push(new Machine({ world, network, node: `node_${at}`, shared, sync, syncMsMax, segmentBytes }, disk))
  }
  return { world, model, network, machines, customers }
}

function arrive({ world, model, machines, customers }: Parts): void {
  const { random } = world
  const machine = random.pick(machines)
  const accountId = random.pick([...model.accounts.keys()])
  const amount = BigInt(random.chance(0.1) ? random.between(0, 2_000) : random.between(0, 100))
  const zombie = random.chance(0.3) ? machine.zombies.find(({ life }) => life.isAlive) : undefined
  if (zombie !== undefined) void customers.spend(machine, zombie.billing, zombie.life, accountId, amount)
  else if (machine.billing !== undefined && machine.isUp) {
    void customers.spend(machine, machine.billing, machine.life, accountId, amount)
  }
}

/** Chooses the faults of this run: none in some runs, so that the normal path is tested too, and all at once in few. */
function scheduleTrouble(parts: Parts, endsAt: number): void {
  const { world, model, network, machines, customers } = parts
  const { random } = world
  const sometime = (run: () => void) => world.after(random.between(0, endsAt - world.now), run)
  const often = (most: number, run: () => void) => {
    if (random.chance(0.5)) for (let left = random.between(1, most); left > 0; left--) sometime(run)
  }
  if (random.chance(0.5)) network.losesCall = network.losesAnswer = 0.04
  if (random.chance(0.3)) network.isLate = 0.05
  if (random.chance(0.2)) network.kills = 0.03
  for (const machine of machines) {
    if (random.chance(0.3)) machine.disk.killInWrite = random.pick([0.005, 0.02])
    if (random.chance(0.15)) machine.disk.failSync = 0.01
  }
  if (random.chance(0.2)) {
    customers.endingsAlwaysFit = false
    sometime(() => (random.pick(machines).disk.othersBytes = random.between(500_000, 1_000_000)))
  } else if (random.chance(0.3)) {
    sometime(() => (random.pick(machines).disk.othersBytes = 650_000 + random.between(0, 50_000)))
  }
  often(2, () => (network.downUntil = world.now + random.between(10, 2_000)))
  often(3, () => random.pick(machines).kill('kill'))
  often(2, () => random.pick(machines).kill('power'))
  often(1, () => random.pick(machines).replace())
  often(2, () => model.credit(random.pick([...model.accounts.keys()]), BigInt(random.between(1, 500))))
  if (random.chance(0.1)) {
    sometime(() => {
      const account = model.accounts.get(random.pick([...model.accounts.keys()]))
      if (account !== undefined) account.enabled = !account.enabled
      customers.look()
    })
  }
  often(1, () => closeIfIdle(random.pick(machines)))
  // Dead nodes start again before long.
  const restart = () => {
    for (const machine of machines) if (!machine.life.isAlive && random.chance(0.5)) machine.start()
    customers.checkAnswered()
    if (world.now < endsAt) world.after(random.between(50, 500), restart)
  }
  restart()
}

/** Closes a node as operators do: after its last request has ended. */
function closeIfIdle(machine: Machine): void {
  const isBusy = machine.requests.some(({ life, isOpen }) => life === machine.life && isOpen)
  if (machine.isUp && !isBusy) void machine.close()
}

function calmDown({ world, network, machines, customers }: Parts): void {
  world.tell('calm')
  network.losesCall = network.losesAnswer = network.isLate = network.kills = 0
  network.downUntil = 0
  for (const machine of machines) machine.disk.killInWrite = machine.disk.failSync = machine.disk.othersBytes = 0
  // Several times, because a process may have been dying when the calm began, or closing, which takes seconds if some
  // still wait for money.
  for (const ms of [0, 1_500, 3_000, 4_500, 6_000]) {
    world.after(ms, () => {
      for (const machine of machines) machine.start()
    })
  }
  world.after(6_000, () => {
    for (const machine of machines) {
      for (const request of machine.requests) void customers.end(machine, request)
    }
  })
}

function finish({ world, model, machines }: Parts): void {
  for (const machine of machines) {
    for (const { life } of machine.zombies) {
      if (life.isAlive && life.isRefused) world.fail(`${life.name} goes on although it was fenced off`)
      life.end()
    }
    if (machine.billing === undefined) world.fail(`${machine.options.node} is not up after the calm`)
    void machine.close()
  }
  world.run(world.now + calmMs)
  if (world.failures.length > 0) return
  for (const machine of machines) {
    if (machine.life.isAlive) world.fail(`${machine.options.node} does not close`)
    const { records } = recoverJournal(machine.disk.attach(new Life('reader', () => {})))
    const owed = replay(records)
    if (owed.length > 0) world.fail(`${machine.options.node} closed with ${owed.length} postings in its journal`)
  }
  reckon({ world, model, machines })
}

/** Every customer pays what is right to the last nano, and nothing is left held. */
function reckon({ world, model, machines }: Pick<Parts, 'world' | 'model' | 'machines'>): void {
  const charges = new Map<string, bigint>()
  for (const { requestId, charge } of model.booked.values()) {
    if (charges.has(requestId)) world.fail(`${requestId} was posted twice`)
    charges.set(requestId, charge)
  }
  for (const request of machines.flatMap(({ requests }) => requests)) {
    const { requestId } = request.order
    const charge = charges.get(requestId) ?? 0n
    const allowed = request.allowed()
    if (!allowed.has(charge)) world.fail(`${requestId} pays ${charge} instead of ${[...allowed].join(' or ')}`)
    const cost = model.costs.get(requestId)
    if (cost !== undefined && cost !== charge) world.fail(`${requestId} pays ${charge}, its record says ${cost}`)
    if (cost === undefined && request.mustBeRecorded) world.fail(`${requestId} has ended, and has no record`)
  }
  for (const [id, { posted, held, credited }] of model.accounts) {
    if (held !== 0n) world.fail(`${id} still holds ${held}`)
    let spent = 0n
    for (const booked of model.booked.values()) if (booked.accountId === id) spent += booked.charge
    if (posted !== credited - spent) world.fail(`${id} is at ${posted}, not ${credited - spent}`)
  }
}
