import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { pinned, startChild, type Child } from './control.ts'
import { benchKey, plainBody, streamBody, streamEvents } from './fixtures.ts'
import { closedLoop, openLoop, post, readStreams } from './load.ts'
import { watchOthers } from './others.ts'
import { measureWays, printWays, type ChunkCpu } from './translation.ts'
import {
  median,
  printSpread,
  printTable,
  ratiosOf,
  systems,
  type All,
  type Figures,
  type PairedRounds,
  type System,
} from './table.ts'

/**
 * `npm run bench [-- --quick]`: the upstream alone, a bare proxy, a minimal gateway, and Turnpike with three kinds of
 * billing, measured in turns in one run. The system under test has a core to itself; the load generator (this process)
 * and the upstream share the other. See docs/performance.md.
 */
const quick = process.argv.includes('--quick')
// The runtime optimises hot code in several steps, and has finished with a gateway after some 80,000 requests.
const plan = quick
  ? {
      rounds: 3,
      warmAnswers: 10_000,
      warmMs: 2_500,
      againMs: 500,
      plainMs: 500,
      chunks: 100,
      streamRounds: 3,
      latencyMs: 500,
      starts: 2,
    }
  : {
      rounds: 9,
      warmAnswers: 100_000,
      warmMs: 25_000,
      againMs: 3_000,
      plainMs: 1_000,
      chunks: 200,
      streamRounds: 21,
      latencyMs: 2_500,
      starts: 5,
    }

const plainConnections = 16
const streamConnections = 32
const manyStreamConnections = 128
const paceMs = 5
const latencyEveryMs = 4 // 250 requests a second
const systemCore = 0
const loadCore = 1

const results = join(import.meta.dir, 'results')
mkdirSync(results, { recursive: true })
// Beside the results, since /tmp is often in memory, and the cost of the ledger's commits depends on the disk.
const dataFolder = mkdtempSync(join(results, 'data-'))
const running: Child[] = []

async function start(system: System, upstream: string): Promise<Child> {
  if (system === 'upstream') return startChild(loadCore, 'upstream.ts', [String(plan.chunks), String(paceMs)])
  if (system === 'bare') return startChild(systemCore, 'bare-proxy.ts', [upstream])
  if (system === 'minimal') return startChild(systemCore, 'minimal-gateway.ts', [upstream])
  return startChild(systemCore, 'turnpike.ts', [upstream, system, mkdtempSync(join(dataFolder, `${system}-`))])
}

const spreadMs = 100
const streams = {
  connections: streamConnections,
  each: 1,
  events: streamEvents(plan.chunks).length,
  spreadMs,
}

async function warmUp(child: Child): Promise<void> {
  const { warmMs: ms, warmAnswers: answersMax } = plan
  await closedLoop(post(child.port, benchKey, plainBody), { connections: plainConnections, ms, answersMax })
  await readStreams(post(child.port, benchKey, streamBody), {
    ...streams,
    connections: manyStreamConnections, // what runs once for each stream is compiled by then, too
    each: quick ? 1 : 10,
  })
}

type Saturated = Pick<Figures, 'requestCpuUs' | 'requestsPerSecond'> & { readonly saturatedMb: number }
type Relayed = Pick<Figures, 'eventCpuUs' | 'readsPerEvent'> & { readonly relayedMb: number }
type RelayedMany = Pick<Figures, 'manyEventCpuUs' | 'manyReadsPerEvent'>
type Sparse = Pick<Figures, 'sparseCpuUs'> & { readonly latencies: readonly number[] }

type Rounds<T> = readonly Readonly<Record<System, T>>[]
/** All rounds, by the kind of load. */
type Measurements = {
  readonly saturated: Rounds<Saturated>
  readonly sparse: Rounds<Sparse>
  readonly relayed: Rounds<Relayed>
  readonly relayedMany: Rounds<RelayedMany>
}

const load = { connections: plainConnections, ms: plan.plainMs }

/** As many requests as the core can take. */
async function saturate({ child }: Measured): Promise<Saturated> {
  const plain = post(child.port, benchKey, plainBody)
  await closedLoop(plain, { ...load, ms: plan.againMs })
  const startedAt = performance.now()
  const { result: answers, cpuUs, rssMb } = await spent(child, () => closedLoop(plain, load))
  const elapsedMs = performance.now() - startedAt
  return { requestCpuUs: cpuUs / answers, requestsPerSecond: (answers / elapsedMs) * 1000, saturatedMb: rssMb }
}

/**
 * Streams whose events arrive one at a time, and between two of which the core is mostly asleep. A round is short, so
 * that the systems are measured close together: what else the machine does changes an event's cost by a third.
 */
async function relay({ child }: Measured): Promise<Relayed> {
  const { result, cpuUs, rssMb } = await spent(child, () =>
    readStreams(post(child.port, benchKey, streamBody), streams),
  )
  return { eventCpuUs: cpuUs / result.events, readsPerEvent: result.reads / result.events, relayedMb: rssMb }
}

/**
 * As many as keep a gateway's core busy for about half of the time. Many more, and the load generator's core would be
 * the limit; events that come together would cost less than those that come one by one.
 */
async function relayMany({ child }: Measured): Promise<RelayedMany> {
  const many = { ...streams, connections: manyStreamConnections }
  const { result, cpuUs } = await spent(child, () => readStreams(post(child.port, benchKey, streamBody), many))
  return { manyEventCpuUs: cpuUs / result.events, manyReadsPerEvent: result.reads / result.events }
}

/** Single requests, at a rate far below what the system can take. */
async function trickle({ child }: Measured): Promise<Sparse> {
  const plain = post(child.port, benchKey, plainBody)
  await closedLoop(plain, load)
  const { result, cpuUs } = await spent(child, () => openLoop(plain, { everyMs: latencyEveryMs, ms: plan.latencyMs }))
  return { sparseCpuUs: cpuUs / result.length, latencies: result }
}

async function spent<T>(child: Child, work: () => Promise<T>): Promise<{ result: T; cpuUs: number; rssMb: number }> {
  const before = await child.vitals()
  const result = await work()
  const after = await child.vitals()
  return { result, cpuUs: after.cpuMicros - before.cpuMicros, rssMb: after.rssBytes / 2 ** 20 }
}

type Idle = Pick<Figures, 'startMs' | 'rssIdleMb'>

/** Latencies are pooled, because a percentile of few samples is noise. All else is the median of the rounds. */
function summarise(system: System, { saturated, sparse, relayed, relayedMany }: Measurements, idle: Idle): Figures {
  const latencies = sparse.flatMap((round) => round[system].latencies).toSorted((a, b) => a - b)
  const percentile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
  const middle = <T>(rounds: Rounds<T>, of: (one: T) => number) => median(rounds.map((round) => of(round[system])))
  return {
    requestCpuUs: middle(saturated, (one) => one.requestCpuUs),
    requestsPerSecond: middle(saturated, (one) => one.requestsPerSecond),
    eventCpuUs: middle(relayed, (one) => one.eventCpuUs),
    readsPerEvent: middle(relayed, (one) => one.readsPerEvent),
    manyEventCpuUs: middle(relayedMany, (one) => one.manyEventCpuUs),
    manyReadsPerEvent: middle(relayedMany, (one) => one.manyReadsPerEvent),
    sparseCpuUs: middle(sparse, (one) => one.sparseCpuUs),
    latencyP50Us: percentile(0.5),
    latencyP99Us: percentile(0.99),
    rssIdleMb: idle.rssIdleMb,
    rssLoadMb: Math.max(
      middle(saturated, (one) => one.saturatedMb),
      middle(relayed, (one) => one.relayedMb),
    ),
    startMs: idle.startMs,
  }
}

/** The figures of each round that are compared within it. */
function pairedOf({ saturated, sparse, relayed, relayedMany }: Measurements): PairedRounds {
  return {
    requestCpuUs: numbersOf(saturated, (one) => one.requestCpuUs),
    requestsPerSecond: numbersOf(saturated, (one) => one.requestsPerSecond),
    sparseCpuUs: numbersOf(sparse, (one) => one.sparseCpuUs),
    eventCpuUs: numbersOf(relayed, (one) => one.eventCpuUs),
    manyEventCpuUs: numbersOf(relayedMany, (one) => one.manyEventCpuUs),
  }
}

function numbersOf<T>(rounds: Rounds<T>, of: (one: T) => number): Record<System, number>[] {
  return rounds.map((round) => {
    const numbers = systems.map((system) => [system, of(round[system])])
    return Object.fromEntries(numbers) as Record<System, number>
  })
}

type Measured = { readonly child: Child; readonly idle: Idle }

/** Starts a system several times to measure its cold start, and keeps the last one running. */
async function startMeasured(system: System, upstream: string): Promise<Measured> {
  const starts: number[] = []
  for (;;) {
    const child = await start(system, upstream)
    starts.push(child.startMs)
    if (starts.length === plan.starts) {
      running.push(child)
      const { rssBytes } = await child.vitals()
      return { child, idle: { startMs: median(starts), rssIdleMb: rssBytes / 2 ** 20 } }
    }
    await child.stop()
  }
}

async function each<T>(of: (system: System) => Promise<T>): Promise<Record<System, T>> {
  const found: [System, T][] = []
  for (const system of systems) found.push([system, await of(system)])
  return Object.fromEntries(found) as Record<System, T>
}

/**
 * Measures all systems in turn, round after round, under one kind of load; each has it for a moment before it is
 * measured. The kinds of load come one after another, because a runtime that was idle for half a minute has thrown away
 * its compiled code, and takes seconds under load to be as fast again.
 */
async function inTurns<T>(
  kind: string,
  count: number,
  measure: (system: System) => Promise<T>,
): Promise<Record<System, T>[]> {
  const rounds: Record<System, T>[] = []
  while (rounds.length < count) {
    process.stderr.write(`${kind}, round ${rounds.length + 1} of ${count}\n`)
    rounds.push(await each(measure))
  }
  return rounds
}

/** As `inTurns`, behind one round that is not counted: no round of these has load of its own before it is measured. */
async function inWarmTurns<T>(kind: string, measure: (system: System) => Promise<T>): Promise<Record<System, T>[]> {
  await each(measure)
  return inTurns(kind, plan.streamRounds, measure)
}

async function run(): Promise<void> {
  // Moves this process to the load generator's core; its children get their cores when they start.
  if (pinned(loadCore).length > 0) Bun.spawnSync(['taskset', '-a', '-cp', String(loadCore), String(process.pid)])
  const beganAt = performance.now()
  const vendor = await start('upstream', '')
  running.push(vendor)
  const measured = await each((system) => startMeasured(system, `http://127.0.0.1:${vendor.port}`))
  await each((system) => warmUp(measured[system].child))

  const others = watchOthers(running)
  const measurements = {
    saturated: await inTurns('saturated', plan.rounds, (system) => saturate(measured[system])),
    sparse: await inTurns('sparse', plan.rounds, (system) => trickle(measured[system])),
    relayed: await inWarmTurns('streams', (system) => relay(measured[system])),
    relayedMany: await inWarmTurns('many streams', (system) => relayMany(measured[system])),
  }
  const streaming = { connections: streamConnections, chunks: plan.chunks, spreadMs }
  await measureWays(measured.counting.child, streaming) // warms up the code that only translation runs
  const translated: ChunkCpu[] = []
  while (translated.length < plan.rounds) translated.push(await measureWays(measured.counting.child, streaming))

  const figures: All = await each((system) => Promise.resolve(summarise(system, measurements, measured[system].idle)))
  const paired = pairedOf(measurements)
  const ratios = ratiosOf(figures, paired)
  printTable(figures, ratios)
  printSpread(paired)
  const translation = printWays(translated)
  const othersShare = await others()
  if (othersShare > othersShareMax) {
    console.log(`\nOther processes took ${Math.round(othersShare * 100)}% of the machine: every figure is too high.`)
  }
  const seconds = Math.round((performance.now() - beganAt) / 1000)
  const name = `${new Date().toISOString().replace(/[:.]/g, '-')}${quick ? '-quick' : ''}.json`
  const written = {
    machine: machine(),
    plan,
    seconds,
    othersShare,
    figures,
    ratios,
    translation,
    rounds: paired,
    translated,
  }
  writeFileSync(join(results, name), `${JSON.stringify(written, undefined, 2)}\n`)
  console.log(
    `\n${plan.rounds} rounds, ${plan.streamRounds} of streams, in ${seconds} s, kept in bench/results/${name}`,
  )
}

const othersShareMax = 0.05

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
