import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { pinned, startChild, type Child } from './control.ts'
import { benchKey, plainBody, streamBody, streamEvents } from './fixtures.ts'
import { closedLoop, openLoop, post, readStreams } from './load.ts'
import { figures, median, printTable, ratiosOf, type Figures, type System } from './table.ts'

/**
 * `npm run bench [-- --quick]`: the upstream alone, a bare proxy, Turnpike with billing that only counts, and Turnpike
 * with its ledger, measured in turns in one run. The system under test has a core to itself; the load generator (this
 * process) and the upstream share the other. See docs/performance.md.
 */
const quick = process.argv.includes('--quick')
const plan = quick
  ? { rounds: 3, warmMs: 1_500, plainMs: 600, streamsEach: 1, chunks: 150, latencyMs: 800, starts: 2 }
  : { rounds: 8, warmMs: 4_000, plainMs: 1_500, streamsEach: 2, chunks: 200, latencyMs: 2_500, starts: 5 }

const plainConnections = 16
const streamConnections = 32
const paceMs = 5
const latencyEveryMs = 4 // 250 requests a second: a fraction of what each of them can do
const systemCore = 0
const loadCore = 1

const results = join(import.meta.dir, 'results')
mkdirSync(results, { recursive: true })
const dataFolder = mkdtempSync(join(results, 'data-'))

const relayedEvents = streamEvents(plan.chunks).length
const upstreamArgs = [String(plan.chunks), String(paceMs)]
const running: Child[] = []

async function start(system: System, upstream: string): Promise<Child> {
  const folder = () => mkdtempSync(join(dataFolder, `${system}-`))
  switch (system) {
    case 'upstream':
      return startChild(loadCore, 'upstream.ts', upstreamArgs)
    case 'bare':
      return startChild(systemCore, 'bare-proxy.ts', [upstream])
    case 'counting':
    case 'strict':
      return startChild(systemCore, 'turnpike.ts', [upstream, system, folder()])
  }
}

type Round = Omit<Figures, 'startMs' | 'rssIdleMb' | 'latencyP50Us' | 'latencyP99Us'> & { latencies: number[] }

async function measure(child: Child): Promise<Round> {
  const plain = post(child.port, benchKey, plainBody)
  const streamed = post(child.port, benchKey, streamBody)

  let before = await child.vitals()
  const startedAt = performance.now()
  const answers = await closedLoop(plain, { connections: plainConnections, ms: plan.plainMs })
  const elapsed = performance.now() - startedAt
  let after = await child.vitals()
  const requestCpuUs = (after.cpuMicros - before.cpuMicros) / answers
  const rssPlain = after.rssBytes

  before = await child.vitals()
  const read = await readStreams(streamed, streamOptions(plan.streamsEach))
  after = await child.vitals()
  const chunkCpuUs = (after.cpuMicros - before.cpuMicros) / read.events

  const latencies = await openLoop(plain, { everyMs: latencyEveryMs, ms: plan.latencyMs })
  return {
    requestCpuUs,
    requestsPerSecond: (answers / elapsed) * 1000,
    chunkCpuUs,
    readsPerEvent: read.reads / read.events,
    rssLoadMb: Math.max(rssPlain, after.rssBytes) / 2 ** 20,
    latencies,
  }
}

function streamOptions(each: number) {
  return { connections: streamConnections, each, events: relayedEvents, spreadMs: paceMs * 20 }
}

async function warmUp(child: Child): Promise<void> {
  await closedLoop(post(child.port, benchKey, plainBody), { connections: plainConnections, ms: plan.warmMs })
  await readStreams(post(child.port, benchKey, streamBody), streamOptions(1))
}

/** The figures of one system over all rounds. Latencies are pooled: a percentile of few samples is noise. */
function summarise(rounds: readonly Round[], child: { startMs: number; rssIdleMb: number }): Figures {
  const latencies = rounds.flatMap((round) => round.latencies).toSorted((a, b) => a - b)
  const percentile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
  const middle = (name: 'requestCpuUs' | 'requestsPerSecond' | 'chunkCpuUs' | 'readsPerEvent' | 'rssLoadMb') =>
    median(rounds.map((round) => round[name]))
  return {
    requestCpuUs: middle('requestCpuUs'),
    requestsPerSecond: middle('requestsPerSecond'),
    chunkCpuUs: middle('chunkCpuUs'),
    readsPerEvent: middle('readsPerEvent'),
    latencyP50Us: percentile(0.5),
    latencyP99Us: percentile(0.99),
    rssIdleMb: child.rssIdleMb,
    rssLoadMb: middle('rssLoadMb'),
    startMs: child.startMs,
  }
}

const systems: readonly System[] = ['upstream', 'bare', 'counting', 'strict']

async function run(): Promise<void> {
  // This process moves to the load generator's core; its children are given theirs at their start.
  if (pinned(loadCore).length > 0) Bun.spawnSync(['taskset', '-a', '-cp', String(loadCore), String(process.pid)])
  const beganAt = performance.now()
  const upstream = await startChild(loadCore, 'upstream.ts', upstreamArgs)
  running.push(upstream)
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`

  const children = new Map<System, Child>([['upstream', upstream]])
  const idle = new Map<System, { startMs: number; rssIdleMb: number }>()
  for (const system of systems) {
    const starts: number[] = []
    for (let i = 0; i < plan.starts; i++) {
      const child = await start(system, upstreamUrl)
      starts.push(child.startMs)
      if (i < plan.starts - 1 || system === 'upstream') await child.stop()
      else {
        running.push(child)
        children.set(system, child)
      }
    }
    const { rssBytes } = await (children.get(system) ?? upstream).vitals()
    idle.set(system, { startMs: median(starts), rssIdleMb: rssBytes / 2 ** 20 })
  }

  for (const child of children.values()) await warmUp(child)
  const rounds = new Map<System, Round[]>(systems.map((system) => [system, []]))
  for (let i = 0; i < plan.rounds; i++) {
    process.stderr.write(`round ${i + 1} of ${plan.rounds}\n`)
    for (const [system, child] of children) rounds.get(system)?.push(await measure(child))
  }

  const measured = figures(systems, (system) =>
    summarise(rounds.get(system) ?? [], idle.get(system) ?? { startMs: Number.NaN, rssIdleMb: Number.NaN }),
  )
  const perRound = Array.from({ length: plan.rounds }, (_, i) => (system: System) => rounds.get(system)?.[i])
  const ratios = ratiosOf(measured, perRound)
  printTable(measured, ratios)
  const seconds = Math.round((performance.now() - beganAt) / 1000)
  const file = join(results, `${new Date().toISOString().replace(/[:.]/g, '-')}${quick ? '-quick' : ''}.json`)
  const written = { machine: machine(), plan, seconds, figures: measured, ratios, rounds: bare(rounds) }
  writeFileSync(file, `${JSON.stringify(written, undefined, 2)}\n`)
  console.log(`\n${plan.rounds} rounds in ${seconds} s, written to ${file}`)
}

/** The rounds without their thousands of latencies. */
function bare(rounds: ReadonlyMap<System, readonly Round[]>) {
  const list = [...rounds].map(([system, of]) => [system, of.map(({ latencies: _, ...rest }) => rest)] as const)
  return Object.fromEntries(list)
}

function machine() {
  const [cpu] = cpus()
  const { version } = JSON.parse(readFileSync(join(import.meta.dir, '../package.json'), 'utf8')) as { version: string }
  return {
    turnpike: version,
    bun: Bun.version,
    platform: `${process.platform} ${process.arch} ${release()}`,
    cpu: cpu?.model ?? 'unknown',
    cores: navigator.hardwareConcurrency,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    pinned: pinned(systemCore).length > 0,
  }
}

try {
  await run()
} finally {
  await Promise.all(running.map((child) => child.stop()))
  rmSync(dataFolder, { recursive: true, force: true })
}
process.exit(0)
