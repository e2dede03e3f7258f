import { requestCrashPoints, type RequestCrashPoint } from '../../src/base/crash-points.ts'
import { Random } from '../simulation/random.ts'
import { judge, type Outcome } from './books.ts'
import { startLoad } from './load.ts'
import { makeWorld, pause, type Engine, type Node, type World } from './world.ts'

export type Campaign = {
  readonly engine: Engine
  readonly nodes: number
  readonly databaseUrl?: string
  readonly mode?: 'leased' | 'strict'
  /** Over all nodes. */
  readonly kills: number
  readonly clients: number
  readonly seed: number
  readonly say?: (line: string) => void
}

export type Summary = Outcome & {
  readonly engine: Engine
  readonly nodes: number
  readonly mode: 'leased' | 'strict'
  readonly kills: number
  /** How often each crash point fired, and how often the gateway was killed at a random moment. */
  readonly killedAt: Readonly<Record<string, number>>
  readonly seconds: number
}

/** The most times a point is passed before it fires, so that crashes happen early and late in a life. */
const hitsMax: Readonly<Record<RequestCrashPoint, number>> = {
  'after-hold': 40,
  'after-send': 80,
  'mid-stream': 600,
  'after-usage': 40,
  'after-settle': 40,
  'before-flush': 25,
  'after-commit-before-mark': 25,
  'lease-refill': 4,
  drain: 1,
}
const lifeMsMax = 5_000

/** Strict billing has no journal and no leases to crash with. */
const strictPoints: readonly RequestCrashPoint[] = [
  'after-hold',
  'after-send',
  'mid-stream',
  'after-usage',
  'after-settle',
]

/** Kills gateways under load again and again, then checks the books. */
export async function run(campaign: Campaign): Promise<Summary> {
  const startedAt = performance.now()
  const random = new Random(campaign.seed)
  const world = await makeWorld(campaign)
  try {
    const accounts = await fund(world)
    const load = startLoad({
      urls: world.nodes.map(({ url }) => url),
      customers: accounts,
      clients: campaign.clients,
      random,
    })
    const killedAt: Record<string, number> = {}
    const budget = { left: campaign.kills }
    await Promise.all(world.nodes.map((node) => killRepeatedly(node, { random, budget, killedAt, ...campaign })))
    // A last life without kills: what the dead processes left is repaired under load, then all requests end.
    await pause(500)
    await load.stop()
    await stopGently(world)
    const outcome = await judge(world, load, accounts)
    const kills = Object.values(killedAt).reduce((sum, count) => sum + count, 0)
    const { engine, nodes, mode = 'leased' } = campaign
    return {
      ...outcome,
      engine,
      nodes,
      mode,
      kills,
      killedAt,
      seconds: Math.round((performance.now() - startedAt) / 1000),
    }
  } finally {
    await world.close()
  }
}

/** The lives of one node, which is running at the end. */
async function killRepeatedly(
  node: Node,
  parts: {
    random: Random
    budget: { left: number }
    killedAt: Record<string, number>
    mode?: Campaign['mode']
    say?: (line: string) => void
  },
): Promise<void> {
  const { random, budget, killedAt, say } = parts
  const points = parts.mode === 'strict' ? strictPoints : requestCrashPoints
  let turn = random.between(0, points.length)
  while (budget.left > 0) {
    budget.left--
    // Every point in turn, and now and then a random moment.
    const chosen = points[turn++ % (points.length + 2)]
    const crash = chosen === undefined ? undefined : `${chosen}:${random.between(1, hitsMax[chosen])}`
    await node.start(crash)
    const how = await live(node, chosen, random)
    killedAt[how] = (killedAt[how] ?? 0) + 1
    say?.(`${node.name}: ${how}`)
  }
  await node.start()
}

async function live(node: Node, chosen: RequestCrashPoint | undefined, random: Random): Promise<string> {
  if (chosen === undefined) {
    await pause(random.between(50, 1_200))
    node.kill()
    await node.ended()
    return 'any moment'
  }
  if (chosen === 'drain') {
    await pause(random.between(100, 500))
    node.terminate()
  }
  const ended = node.ended()
  const how = await Promise.race([ended, pause(lifeMsMax).then(() => 'too late')])
  if (how === 'SIGKILL') return chosen
  if (how !== 'too late') throw new Error(`${node.name} ended with ${how} instead of ${chosen}: ${node.output()}`)
  node.kill()
  await ended
  return 'any moment'
}

async function fund(world: World) {
  const make = async (name: string, credit: string, idempotent = false) => ({
    ...(await world.fund(name, credit)),
    idempotent,
  })
  return [await make('rich', '100'), await make('poor', '0.1'), await make('careful', '20', true)]
}

async function stopGently(world: World): Promise<void> {
  for (const node of world.nodes) node.terminate()
  for (const node of world.nodes) {
    const code = await node.ended()
    if (code !== 0) throw new Error(`${node.name} did not stop gently (${code}): ${node.output()}`)
  }
}
