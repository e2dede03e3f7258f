import { taskCrashPoints } from '../../src/base/crash-points.ts'
import { nano, parseDollars, type Nano } from '../../src/base/money.ts'
import { checkLedger } from '../../src/store/check.ts'
import type { Store } from '../../src/store/open.ts'
import { Random } from '../simulation/random.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { makeWorld, pause, type Engine, type Node, type World } from './world.ts'

/** Gateways that are killed while they order, poll and settle videos. */
export type TaskCampaign = {
  readonly engine: Engine
  readonly databaseUrl?: string
  readonly nodes: number
  /** Rounds over all crash points: in each round every point ends one life. */
  readonly rounds: number
  readonly seed: number
  readonly say?: (line: string) => void
}

export type TaskOutcome = {
  readonly kills: number
  readonly killedAt: Readonly<Record<string, number>>
  readonly orders: number
  readonly tasks: number
  readonly vendorTasks: number
  readonly duplicates: number
  readonly orphans: number
  /** Webhook deliveries: at least one per task, and all of one task under the same id. */
  readonly deliveries: number
  readonly charged: Nano
  readonly wrong: readonly string[]
}

/** A model whose vendor finds a task by our reference. */
const findable = 'film'
/** A model whose vendor keeps a list without references. */
export const unfindable = 'reel'
const perTask = { cost: 350_000_000n, charge: 700_000_000n } as const

export function videoSettings(vendorUrl: string): string {
  return `sandbox: false
channels:
  - { id: kling, vendor: kling, baseUrl: "${vendorUrl}/kling", keys: ["chaos:chaos-secret"] }
  - { id: dashscope, vendor: dashscope, baseUrl: "${vendorUrl}/dashscope", keys: ["one"] }
models:
  - { id: ${findable}, from: kling-v2-6, prices: { perSecond: { "1080p": { sound: "0.14", silent: "0.07" } }, markup: "2" } }
  - { id: ${unfindable}, from: wan2.6-t2v }
tasks: { pollSeconds: 0.1, doubtSeconds: 0.7 }
webhooks: { allowPrivate: true }
timeouts: { drainSeconds: 1 }
log: { level: warn }
`
}

// Enough for any campaign: a customer without funds would bring no node to its crash point.
const credit = '1000000'

export async function runTasks(campaign: TaskCampaign): Promise<TaskOutcome> {
  const random = new Random(campaign.seed)
  const world = await makeWorld({ ...campaign, settings: videoSettings })
  const receiver = await startReceiver()
  // The receiver fails now and then, but at most once per event: the try after a second failure is half a minute away.
  const missed = new Set<unknown>()
  receiver.reply(({ headers: { 'webhook-id': id } }) => {
    if (missed.has(id) || !random.chance(0.05)) return 204
    missed.add(id)
    return 'hang-up'
  })
  const killedAt: Record<string, number> = {}
  try {
    const { key } = await world.fund('films', credit)
    const customer = startCustomer(world, key, receiver.url(), random)
    for (let round = 0; round < campaign.rounds; round++) {
      for (const point of taskCrashPoints) {
        const node = random.pick(world.nodes)
        const [how] = await Promise.all([die(node, point, random.between(1, 4)), reviveAll(world, node)])
        killedAt[how] = (killedAt[how] ?? 0) + 1
        campaign.say?.(`${node.name}: ${how}`)
      }
    }
    await reviveAll(world)
    await customer.stop()
    const kills = Object.values(killedAt).reduce((sum, count) => sum + count, 0)
    receiver.reply(204)
    return { kills, killedAt, orders: customer.orders(), ...(await judge(world, customer, receiver)) }
  } finally {
    receiver.close()
    await world.close()
  }
}

/** Starts all nodes again except the one that is about to die. */
async function reviveAll({ nodes }: World, but?: Node): Promise<void> {
  await Promise.all(nodes.filter((node) => node !== but && !node.running).map((node) => node.start()))
}

// An armed point is reached within seconds, as long as videos are ordered.
const lifeMsMax = 20_000

/** Starts the node armed and waits until it dies at the point. If that takes too long, kills it at a random moment. */
async function die(node: Node, point: string, times: number): Promise<string> {
  node.kill()
  await node.ended()
  await node.start(`${point}:${times}`)
  const ended = node.ended()
  const how = await Promise.race([ended, pause(lifeMsMax).then(() => 'too late')])
  if (how === 'SIGKILL') return point
  if (how !== 'too late') throw new Error(`${node.name} ended with ${how} instead of ${point}: ${node.output()}`)
  node.kill()
  await ended
  return 'any moment'
}

type Customer = {
  orders(): number
  /** The ids that were answered with 202, by Idempotency-Key if there was one. */
  readonly promised: Map<string, Set<string>>
  stop(): Promise<void>
}

/** Orders one video after another, half of them under a key that is repeated until there is an answer. */
function startCustomer(world: World, key: string, webhookUrl: string, random: Random): Customer {
  const promised = new Map<string, Set<string>>()
  const state = { count: 0, isOver: false }

  async function order(idempotencyKey: string | undefined): Promise<'answered' | 'nothing'> {
    const { url } = random.pick(world.nodes)
    const video = { model: findable, duration: 5, resolution: '1080p', input: { prompt: 'A fox.' } }
    const body = { ...video, webhook_url: webhookUrl }
    try {
      const response = await fetch(`${url}/v1/videos/generations`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
        },
        body: JSON.stringify(body),
        keepalive: false,
        signal: AbortSignal.timeout(10_000),
      })
      if (response.status !== 202) {
        await response.arrayBuffer()
        return 'nothing'
      }
      const { id } = (await response.json()) as { id: string }
      const name = idempotencyKey ?? id
      promised.set(name, (promised.get(name) ?? new Set()).add(id))
      return 'answered'
    } catch {
      return 'nothing'
    }
  }

  async function client(): Promise<void> {
    while (!state.isOver) {
      const idempotencyKey = random.chance(0.5) ? crypto.randomUUID() : undefined
      state.count++
      const triesMax = idempotencyKey === undefined ? 1 : 100
      for (let tries = 1; (await order(idempotencyKey)) === 'nothing' && tries < triesMax; tries++) {
        if (state.isOver) break
        await pause(50)
      }
      // Polls keep to a vendor's pace, ten a second. More orders would leave a backlog that grows with the campaign.
      await pause(random.between(200, 1_200))
    }
  }

  const clients = Array.from({ length: 3 }, client)
  return {
    orders: () => state.count,
    promised,
    async stop() {
      state.isOver = true
      await Promise.all(clients)
    },
  }
}

type Line = { ref: string; status: number; cost: string }

// Polls keep to a real vendor's pace, so tasks that are open after a long campaign take their time.
const settledMsMax = 15 * 60_000
// A failed delivery is tried again within seconds.
const toldMsMax = 3 * 60_000

type Judged = Omit<TaskOutcome, 'kills' | 'killedAt' | 'orders'>

async function judge(world: World, customer: Customer, receiver: Receiver): Promise<Judged> {
  const store = await world.openStore()
  const wrong: string[] = []
  try {
    await allOver(store)
    const bill = ((await (await fetch(world.billUrl)).json()) as { data: Line[] }).data
    const report = await world.command(['reconcile', '--bill', world.billUrl, '--json'])
    if (report.code !== 0) wrong.push(`reconcile gave ${report.code}: ${report.out.slice(0, 2_000)} ${report.err}`)
    for (const breach of await checkLedger(store)) wrong.push(`${breach.rule} ${breach.subject}: ${breach.why}`)
    const vendor = await vendorSide(store, bill, wrong)
    const charged = await customerSide(store, customer, wrong)
    const deliveries = await receiverSide(store, receiver, wrong)
    return { ...vendor, deliveries, charged, wrong }
  } finally {
    await store.close()
  }
}

async function allOver(store: Store): Promise<void> {
  const giveUpAt = performance.now() + settledMsMax
  for (;;) {
    const open = await store.db
      .selectFrom('task')
      .select(['id', 'state', 'in_doubt', 'sends', 'lost', 'failures'])
      .where('state', 'in', ['creating', 'submitted', 'running'])
      .execute()
    if (open.length === 0) return
    if (performance.now() > giveUpAt) throw new Error(`tasks that never end: ${JSON.stringify(open.slice(0, 5))}`)
    await pause(100)
  }
}

/** The vendor's side: every video it made is one of ours, and none was bought twice. */
async function vendorSide(store: Store, bill: readonly Line[], wrong: string[]) {
  const tasks = await store.db.selectFrom('task').select(['id', 'attempt_id', 'state', 'failure']).execute()
  const byRef = new Map(tasks.map((task) => [task.attempt_id, task]))
  const made = bill.filter(({ status }) => status === 200)
  const seen = new Set<string>()
  let duplicates = 0
  let orphans = 0
  for (const { ref, cost } of made) {
    if (seen.has(ref)) duplicates++
    seen.add(ref)
    const task = byRef.get(ref)
    if (task === undefined) orphans++
    else if (task.state !== 'succeeded') wrong.push(`task ${task.id} is ${task.state}, and the vendor made it`)
    if (parseDollars(cost) !== perTask.cost) wrong.push(`the film ${ref} costs ${cost} on the bill`)
  }
  for (const task of tasks) {
    if (task.state === 'succeeded' && !seen.has(task.attempt_id)) wrong.push(`task ${task.id} was never made`)
    if (task.state === 'failed') wrong.push(`task ${task.id} failed: ${JSON.stringify(task.failure)}`)
  }
  if (duplicates > 0) wrong.push(`${duplicates} films were bought twice`)
  if (orphans > 0) wrong.push(`${orphans} films of the vendor are nobody's`)
  return { tasks: tasks.length, vendorTasks: made.length, duplicates, orphans }
}

/** The receiver got a webhook for every video, and for each under one id. */
async function receiverSide(store: Store, { received }: Receiver, wrong: string[]): Promise<number> {
  const giveUpAt = performance.now() + toldMsMax
  // Events that dead nodes had claimed are free after a minute (T-08 covers that). This frees them at once, so a node
  // that is just delivering one may deliver it twice.
  await store.db.updateTable('webhook_event').set({ claim_until: 0 }).where('state', '=', 'pending').execute()
  const untold = () => store.db.selectFrom('webhook_event').select('id').where('state', '!=', 'delivered').execute()
  while ((await untold()).length > 0 && performance.now() < giveUpAt) await pause(100)
  const idsOf = new Map<string, Set<string>>()
  for (const { headers, body } of received) {
    const { data } = JSON.parse(body) as { data: { id: string } }
    idsOf.set(data.id, (idsOf.get(data.id) ?? new Set()).add(String(headers['webhook-id'])))
  }
  const tasks = await store.db.selectFrom('task').select('id').where('state', '!=', 'refused').execute()
  for (const { id } of tasks) {
    const ids = idsOf.get(id)?.size ?? 0
    if (ids !== 1) wrong.push(`of ${id} the receiver was told under ${ids} ids`)
  }
  for (const { id } of await untold()) wrong.push(`the event ${id} was not delivered`)
  return received.length
}

async function customerSide(store: Store, { promised }: Customer, wrong: string[]): Promise<Nano> {
  const tasks = await store.db.selectFrom('task').select(['id', 'state', 'request_id']).execute()
  const states = new Map(tasks.map(({ id, state }) => [id, state]))
  for (const [name, ids] of promised) {
    if (ids.size > 1) wrong.push(`the key ${name} ordered ${ids.size} videos`)
    for (const id of ids) if (states.get(id) !== 'succeeded') wrong.push(`${id} was promised and is ${states.get(id)}`)
  }
  const made = tasks.filter(({ state }) => state === 'succeeded').length
  const { posted, held } = await store.db
    .selectFrom('account')
    .select(['posted', 'held'])
    .where('name', '=', 'films')
    .executeTakeFirstOrThrow()
  const charged = nano((parseDollars(credit) ?? 0n) - posted)
  if (held !== 0n) wrong.push(`${held} is still held`)
  if (charged !== BigInt(made) * perTask.charge) wrong.push(`${charged} was charged for ${made} videos`)
  return charged
}
