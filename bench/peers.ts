import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pinned, startChild } from './control.ts'
import { benchKey, benchModel, plainBody, streamBody, vendorKey } from './fixtures.ts'
import { startForeign, type Foreign } from './foreign.ts'
import { closedLoop, openLoop, post, readStreams, type Target } from './load.ts'
import { median } from './table.ts'

/**
 * `npx bun bench/peers.ts [--portkey start-server.js] [--litellm bin/litellm] [--rounds 5]`: Turnpike beside other
 * gateways that are installed on this machine, in turns in one run. See "Beside other gateways" in docs/performance.md,
 * which says how to install them.
 */
const { values } = parseArgs({
  options: { portkey: { type: 'string' }, litellm: { type: 'string' }, rounds: { type: 'string', default: '5' } },
})
const rounds = Number(values.rounds)
// Rates that the slowest of them can keep up with on one core.
const chunks = 100
const paceMs = 20
const streamsAtOnce = 8
const latencyEveryMs = 20
const latencyMs = 3_000
const connections = 16
const warmMs = 15_000
const warmStreams = 3
const settleMs = 1_500
const saturatedMs = 2_000

const results = join(import.meta.dir, 'results')
mkdirSync(results, { recursive: true })
const folder = mkdtempSync(join(results, 'data-'))
const running: { stop(): Promise<void> }[] = []

type System = { readonly name: string; readonly server: Foreign; readonly target: (body: string) => Target }

/** Each in its leanest configuration: one model, one key, no database, log or cache beyond what it has by default. */
async function startAll(upstream: string): Promise<System[]> {
  const systems: System[] = []
  const add = (name: string, server: Foreign, headers: Readonly<Record<string, string>> = {}, key = benchKey) => {
    running.push(server)
    systems.push({ name, server, target: (body) => post(server.port, key, body, { headers }) })
  }
  add('bare', await startChild(0, 'bare-proxy.ts', [upstream]))
  add('Turnpike', await startChild(0, 'turnpike.ts', [upstream, 'leased', join(folder, 'leased')]))
  const { portkey, litellm } = values
  if (portkey !== undefined) {
    const command = (port: number) => ['node', portkey, '--headless', `--port=${port}`]
    const headers = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${upstream}/v1` }
    // It checks no keys: the client's is the vendor's.
    add('Portkey', await startForeign(0, { command, healthPath: '/' }), headers, vendorKey)
  }
  if (litellm !== undefined) {
    const settings = join(folder, 'litellm.yaml')
    writeFileSync(settings, litellmSettings(upstream))
    const command = (port: number) => [litellm, '--config', settings, '--host', '127.0.0.1', '--port', String(port)]
    add('LiteLLM', await startForeign(0, { command, healthPath: '/health/liveliness' }))
  }
  return systems
}

function litellmSettings(upstream: string): string {
  return `
model_list:
  - model_name: ${benchModel}
    litellm_params: { model: openai/${benchModel}, api_key: ${vendorKey}, api_base: "${upstream}/v1" }
general_settings: { master_key: ${benchKey} }
`
}

const streams = { connections: streamsAtOnce, each: 1, events: { atLeast: chunks }, spreadMs: 100 }

/** Systems whose streams fail although their plain answers do not: the row of streams stays empty for them. */
const withoutStreams = new Set<System>()

async function warmUp(system: System): Promise<void> {
  await closedLoop(system.target(plainBody), { connections, ms: warmMs })
  try {
    await readStreams(system.target(streamBody), { ...streams, each: warmStreams })
  } catch (thrown) {
    withoutStreams.add(system)
    console.error(`${system.name} does not stream: ${String(thrown)}`)
  }
}

type Round = {
  readonly requestCpuUs: number
  readonly requestsPerSecond: number
  readonly eventCpuUs: number
  readonly rssMb: number
  readonly latencies: readonly number[]
}

async function measure(system: System): Promise<Round> {
  const { server, target } = system
  const plain = target(plainBody)
  await closedLoop(plain, { connections, ms: settleMs })
  const startedAt = performance.now()
  const saturated = await spent(server, () => closedLoop(plain, { connections, ms: saturatedMs }))
  const seconds = (performance.now() - startedAt) / 1000
  const latencies = await openLoop(plain, { everyMs: latencyEveryMs, ms: latencyMs })
  const relayed = withoutStreams.has(system)
    ? { cpuUs: Number.NaN, rssMb: 0 }
    : await spent(server, () => readStreams(target(streamBody), streams))
  return {
    requestCpuUs: saturated.cpuUs / saturated.result,
    requestsPerSecond: saturated.result / seconds,
    // A gateway may send more or fewer events than it was sent, so these are the vendor's.
    eventCpuUs: relayed.cpuUs / (streamsAtOnce * chunks),
    rssMb: Math.max(saturated.rssMb, relayed.rssMb),
    latencies,
  }
}

async function spent<T>(server: Foreign, work: () => Promise<T>): Promise<{ result: T; cpuUs: number; rssMb: number }> {
  const before = await server.vitals()
  const result = await work()
  const after = await server.vitals()
  return { result, cpuUs: after.cpuMicros - before.cpuMicros, rssMb: after.rssBytes / 2 ** 20 }
}

type Measured = { readonly system: System; readonly rounds: readonly Round[] }

const middle = ({ rounds: all }: Measured, figure: Exclude<keyof Round, 'latencies'>) =>
  median(all.map((round) => round[figure]))

function latency({ rounds: all }: Measured, share: number): number {
  const samples = all.flatMap(({ latencies }) => latencies).toSorted((a, b) => a - b)
  return (samples[Math.floor(samples.length * share)] ?? Number.NaN) / 1000
}

const rows: readonly (readonly [name: string, of: (measured: Measured) => number, digits?: number])[] = [
  ['CPU per request, saturated, µs', (measured) => middle(measured, 'requestCpuUs')],
  ['requests per second, one core', (measured) => middle(measured, 'requestsPerSecond')],
  ['CPU per relayed event, µs', (measured) => middle(measured, 'eventCpuUs')],
  ['latency p50 at 50 a second, ms', (measured) => latency(measured, 0.5), 1],
  ['latency p99 at 50 a second, ms', (measured) => latency(measured, 0.99), 1],
  ['memory under load, MB', (measured) => middle(measured, 'rssMb')],
  ['cold start, s', ({ system }) => system.server.startMs / 1000, 1],
]

function print(all: readonly Measured[]): void {
  console.log(`| | ${all.map(({ system }) => system.name).join(' | ')} |`)
  console.log(`|---|${'---:|'.repeat(all.length)}`)
  for (const [name, of, digits = 0] of rows) {
    const cells = all.map(of).map((figure) => (Number.isNaN(figure) ? '–' : figure.toFixed(digits)))
    console.log(`| ${name} | ${cells.join(' | ')} |`)
  }
}

async function run(): Promise<void> {
  if (pinned(1).length > 0) Bun.spawnSync(['taskset', '-a', '-cp', '1', String(process.pid)])
  const vendor = await startChild(1, 'upstream.ts', [String(chunks), String(paceMs)])
  running.push(vendor)
  const systems = await startAll(`http://127.0.0.1:${vendor.port}`)
  for (const system of systems) await warmUp(system)
  const turns: Map<System, Round[]> = new Map(systems.map((system) => [system, []]))
  for (let round = 1; round <= rounds; round++) {
    process.stderr.write(`round ${round} of ${rounds}\n`)
    for (const [system, measured] of turns) measured.push(await measure(system))
  }
  print([...turns].map(([system, measured]) => ({ system, rounds: measured })))
}

try {
  await run()
} finally {
  await Promise.all(running.map((child) => child.stop()))
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)
