/** Measured side by side: three baselines, and Turnpike with counting, leased (the default) and strict billing. */
export const systems = ['upstream', 'bare', 'minimal', 'counting', 'leased', 'strict'] as const
export type System = (typeof systems)[number]

export type Figures = {
  readonly requestCpuUs: number
  readonly requestsPerSecond: number
  readonly eventCpuUs: number
  /** The same where the core is busy, and so awake, half of the time. */
  readonly manyEventCpuUs: number
  /** The client's reads per event: near 1 when events arrive one by one. */
  readonly readsPerEvent: number
  readonly manyReadsPerEvent: number
  /** At a fixed rate far below what the system can do, where every request finds cold caches and a sleeping thread. */
  readonly sparseCpuUs: number
  readonly latencyP50Us: number
  readonly latencyP99Us: number
  readonly rssIdleMb: number
  readonly rssLoadMb: number
  readonly startMs: number
}

export type All = Readonly<Record<System, Figures>>

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

type Row = {
  readonly name: string
  readonly unit: string
  readonly digits: number
  readonly of: (figures: Figures, upstream: Figures) => number
  /** Set where the figure is taken in every round: its ratio is then the median of the rounds' own ratios. */
  readonly paired?: keyof PairedRounds
  /** Set where a ratio would mean nothing, and is left out. */
  readonly bare?: true
}

type Paired = 'requestCpuUs' | 'requestsPerSecond' | 'eventCpuUs' | 'manyEventCpuUs' | 'sparseCpuUs'
/** The figures that are compared within each round, round by round. */
export type PairedRounds = { readonly [P in Paired]: readonly Readonly<Record<System, number>>[] }

const rows: readonly Row[] = [
  { name: 'CPU per request, saturated', unit: 'µs', digits: 0, of: (f) => f.requestCpuUs, paired: 'requestCpuUs' },
  { name: 'CPU per request, 250 a second', unit: 'µs', digits: 0, of: (f) => f.sparseCpuUs, paired: 'sparseCpuUs' },
  { name: 'CPU per relayed event, 32 streams', unit: 'µs', digits: 1, of: (f) => f.eventCpuUs, paired: 'eventCpuUs' },
  {
    name: 'CPU per relayed event, 128 streams',
    unit: 'µs',
    digits: 1,
    of: (f) => f.manyEventCpuUs,
    paired: 'manyEventCpuUs',
  },
  { name: 'client reads per event, 32 streams', unit: '', digits: 2, of: (f) => f.readsPerEvent, bare: true },
  { name: 'client reads per event, 128 streams', unit: '', digits: 2, of: (f) => f.manyReadsPerEvent, bare: true },
  {
    name: 'requests per second, one core',
    unit: '',
    digits: 0,
    of: (f) => f.requestsPerSecond,
    paired: 'requestsPerSecond',
  },
  { name: 'latency p50', unit: 'µs', digits: 0, of: (f) => f.latencyP50Us, bare: true },
  { name: 'latency p99', unit: 'µs', digits: 0, of: (f) => f.latencyP99Us, bare: true },
  { name: 'added latency p50', unit: 'µs', digits: 0, of: (f, upstream) => f.latencyP50Us - upstream.latencyP50Us },
  { name: 'added latency p99', unit: 'µs', digits: 0, of: (f, upstream) => f.latencyP99Us - upstream.latencyP99Us },
  { name: 'memory idle', unit: 'MB', digits: 0, of: (f) => f.rssIdleMb },
  { name: 'memory under load', unit: 'MB', digits: 0, of: (f) => f.rssLoadMb },
  { name: 'cold start', unit: 'ms', digits: 0, of: (f) => f.startMs },
]

export type Ratios = Readonly<Record<string, Readonly<Record<Turnpike, number>>>>
type Turnpike = Exclude<System, 'upstream' | 'bare'>
const compared = ['minimal', 'counting', 'leased', 'strict'] as const satisfies Turnpike[]

/**
 * Each figure as a multiple of the bare proxy's. A figure that was taken in rounds is compared within each round,
 * because whatever slowed the machine for a while slowed both systems of that round.
 */
export function ratiosOf(all: All, rounds: PairedRounds): Ratios {
  const ratio = ({ of, paired }: Row, system: Turnpike) =>
    paired === undefined
      ? of(all[system], all.upstream) / of(all.bare, all.upstream)
      : median(rounds[paired].map((round) => round[system] / round.bare))
  return Object.fromEntries(
    rows
      .filter((row) => row.bare !== true)
      .map((row) => [
        row.name,
        {
          minimal: ratio(row, 'minimal'),
          counting: ratio(row, 'counting'),
          leased: ratio(row, 'leased'),
          strict: ratio(row, 'strict'),
        },
      ]),
  )
}

export function printTable(all: All, ratios: Ratios): void {
  const head = ['', ...systems, ...compared.map((system) => `${system}/bare`)]
  const lines = rows.map((row) => [
    row.unit === '' ? row.name : `${row.name}, ${row.unit}`,
    ...systems.map((system) => row.of(all[system], all.upstream).toFixed(row.digits)),
    ...compared.map((system) => {
      const ratio = ratios[row.name]?.[system]
      return ratio === undefined ? '' : `${ratio.toFixed(2)}x`
    }),
  ])
  const widths = head.map((_, column) => Math.max(...[head, ...lines].map((line) => line[column]?.length ?? 0)))
  const write = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' | ')} |`
  console.log(write(head))
  console.log(
    `|${widths.map((width, i) => (i === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`,
  )
  for (const line of lines) console.log(write(line))
}

/** Between which ratios the middle half of the rounds lie: how far a median of them is to be trusted. */
export function printSpread(rounds: PairedRounds): void {
  const shown = ['counting', 'leased'] as const
  console.log(`\nThe middle half of the rounds (${shown.map((system) => `${system}/bare`).join(', ')})\n`)
  for (const { name, paired } of rows) {
    if (paired === undefined) continue
    const spreads = shown.map((system) => {
      const sorted = rounds[paired].map((round) => round[system] / round.bare).toSorted((a, b) => a - b)
      const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]?.toFixed(2)
      return `${at(0.25)} to ${at(0.75)}`
    })
    console.log(`${name.padEnd(34)}  ${spreads.join('   ')}`)
  }
}
