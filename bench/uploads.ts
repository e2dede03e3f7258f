import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { paddedPng } from '../test/support/large-image.ts'
import { startChild, type Child, type Vitals } from './control.ts'
import { benchKey, editsModel } from './fixtures.ts'
import { closedLoop, postForm, type Target } from './load.ts'
import { watchOthers } from './others.ts'
import { median } from './table.ts'

/**
 * `npm run bench:uploads`: images to edit, as forms with a file, sent through Turnpike and through two proxies that do
 * less (`upload-proxy.ts`), in turns in one run. See "Uploads" in docs/performance.md.
 */
const systems = ['bare', 'parsing', 'counting', 'leased'] as const
type System = (typeof systems)[number]
const compared = ['parsing', 'counting', 'leased'] as const satisfies System[]

const largeBytes = 50_000_000
const smallBytes = 20_000
const rounds = 5
const warmMs = 2_000
const smallMs = 1_000
const smallConnections = 16
const largeEach = 3
const path = '/v1/images/edits'

const results = join(import.meta.dir, 'results')
mkdirSync(results, { recursive: true })
const dataFolder = mkdtempSync(join(results, 'data-'))
const running: Child[] = []

type Measured = {
  readonly smallCpuUs: number
  readonly smallPerSecond: number
  readonly largeCpuUsPerMb: number
  readonly largeSeconds: number
  /** The peak of memory beyond what the process had before. */
  readonly oneGrowthMb: number
  readonly fourGrowthMb: number
}

async function started(core: 0 | 1, script: string, args: readonly string[]): Promise<Child> {
  const child = await startChild(core, script, args)
  running.push(child)
  return child
}

function start(system: System, upstream: string): Promise<Child> {
  if (system === 'bare' || system === 'parsing') return started(0, 'upload-proxy.ts', [upstream, system])
  return started(0, 'turnpike.ts', [upstream, system, mkdtempSync(join(dataFolder, `${system}-`))])
}

function form(file: Buffer<ArrayBuffer>): FormData {
  const made = new FormData()
  made.append('model', editsModel)
  made.append('prompt', 'The same house with a red door, in the light of an early evening.')
  made.append('image', new File([file], 'house.png', { type: 'image/png' }))
  return made
}

type Spent = { readonly answers: number; readonly ms: number; readonly before: Vitals; readonly after: Vitals }

async function spend(child: Child, target: Target, options: Parameters<typeof closedLoop>[1]): Promise<Spent> {
  const before = await child.vitals()
  const startedAt = performance.now()
  const answers = await closedLoop(target, options)
  const ms = performance.now() - startedAt
  return { answers, ms, before, after: await child.vitals() }
}

const cpuOf = ({ before, after, answers }: Spent) => (after.cpuMicros - before.cpuMicros) / answers
const growthMbOf = ({ before, after }: Spent) => (after.peakRssBytes - before.rssBytes) / 1e6

async function measure(child: Child, small: Target, large: Target): Promise<Measured> {
  const little = await spend(child, small, { connections: smallConnections, ms: smallMs })
  const one = await spend(child, large, { connections: 1, ms: 60_000, answersMax: largeEach })
  const four = await spend(child, large, { connections: 4, ms: 60_000, answersMax: 1 })
  return {
    smallCpuUs: cpuOf(little),
    smallPerSecond: (little.answers / little.ms) * 1_000,
    largeCpuUsPerMb: cpuOf(one) / (largeBytes / 1e6),
    largeSeconds: one.ms / one.answers / 1_000,
    oneGrowthMb: growthMbOf(one),
    fourGrowthMb: growthMbOf(four),
  }
}

type Row = { readonly name: string; readonly key: keyof Measured; readonly digits: number; readonly most?: true }

// Memory is judged by the worst round, the rest by the median.
const rows: readonly Row[] = [
  { name: 'CPU per MB of a 50 MB form, µs', key: 'largeCpuUsPerMb', digits: 0 },
  { name: 'seconds for a 50 MB form', key: 'largeSeconds', digits: 2 },
  { name: 'memory growth, 50 MB one by one, MB', key: 'oneGrowthMb', digits: 0, most: true },
  { name: 'memory growth, 50 MB four at once, MB', key: 'fourGrowthMb', digits: 0, most: true },
  { name: 'CPU per form of 20 KB, µs', key: 'smallCpuUs', digits: 0 },
  { name: 'forms of 20 KB per second, one core', key: 'smallPerSecond', digits: 0 },
]

type Round = Readonly<Record<System, Measured>>

function print(taken: readonly Round[]): void {
  console.log(`| | ${systems.join(' | ')} | ${compared.map((system) => `${system}/bare`).join(' | ')} |`)
  console.log(`|---|${'---:|'.repeat(systems.length + compared.length)}`)
  for (const { name, key, digits, most } of rows) {
    const of = (system: System) => taken.map((round) => round[system][key])
    const figure = (system: System) => (most === true ? Math.max(...of(system)) : median(of(system)))
    const ratio = (system: System) =>
      most === true
        ? figure(system) / figure('bare')
        : median(taken.map((round) => round[system][key] / round.bare[key]))
    const cells = [
      name,
      ...systems.map((system) => figure(system).toFixed(digits)),
      ...compared.map((system) => `${ratio(system).toFixed(2)}x`),
    ]
    console.log(`| ${cells.join(' | ')} |`)
  }
}

async function run(): Promise<void> {
  const upstream = await started(1, 'upload-upstream.ts', [])
  const url = `http://127.0.0.1:${upstream.port}`
  const [small, large] = [form(paddedPng(smallBytes)), form(paddedPng(largeBytes))]
  const targets = {} as Record<System, { child: Child; small: Target; large: Target }>
  for (const system of systems) {
    const child = await start(system, url)
    const of = (each: FormData) => postForm(child.port, benchKey, each, path)
    targets[system] = { child, small: await of(small), large: await of(large) }
    await closedLoop(targets[system].small, { connections: smallConnections, ms: warmMs })
    await closedLoop(targets[system].large, { connections: 1, ms: 60_000, answersMax: 1 })
  }
  const others = watchOthers(running)
  const taken: Round[] = []
  for (let at = 0; at < rounds; at++) {
    const round = {} as Record<System, Measured>
    for (const system of systems) {
      const { child, ...forms } = targets[system]
      round[system] = await measure(child, forms.small, forms.large)
    }
    taken.push(round)
  }
  print(taken)
  console.log(`\n${rounds} rounds; other processes took ${Math.round((await others()) * 100)}% of the machine.`)
}

try {
  await run()
} finally {
  await Promise.all(running.map((child) => child.stop()))
  rmSync(dataFolder, { recursive: true, force: true })
}
process.exit(0)
