export type System = 'upstream' | 'bare' | 'counting' | 'strict'

export type Figures = {
  readonly requestCpuUs: number
  readonly requestsPerSecond: number
  readonly chunkCpuUs: number
  /** What the client read at a time: near 1 when events arrive one by one. */
  readonly readsPerEvent: number
  readonly latencyP50Us: number
  readonly latencyP99Us: number
  readonly rssIdleMb: number
  readonly rssLoadMb: number
  readonly startMs: number
}

export type All = Readonly<Record<System, Figures>>

export function figures(systems: readonly System[], of: (system: System) => Figures): All {
  return Object.fromEntries(systems.map((system) => [system, of(system)])) as Record<System, Figures>
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

type InRounds = Partial<Pick<Figures, 'requestCpuUs' | 'chunkCpuUs' | 'rssLoadMb'>>

export type Ratios = { readonly [F in keyof Figures | 'addedP50Us' | 'addedP99Us']?: { counting: number; strict: number } }

/**
 * How many times the bare proxy's figure. Where a figure was taken in rounds it is the median of the rounds' own
 * ratios: what slowed the machine for a while slowed both halves of the same round.
 */
export function ratiosOf(all: All, rounds: readonly ((system: System) => InRounds | undefined)[]): Ratios {
  const paired = (figure: keyof InRounds, system: System) =>
    median(rounds.map((of) => (of(system)?.[figure] ?? Number.NaN) / (of('bare')?.[figure] ?? Number.NaN)))
  const plain = (figure: keyof Figures, system: System) => all[system][figure] / all.bare[figure]
  const added = (figure: 'latencyP50Us' | 'latencyP99Us', system: System) =>
    (all[system][figure] - all.upstream[figure]) / (all.bare[figure] - all.upstream[figure])
  const both = (of: (system: System) => number) => ({ counting: of('counting'), strict: of('strict') })
  return {
    requestCpuUs: both((system) => paired('requestCpuUs', system)),
    requestsPerSecond: both((system) => plain('requestsPerSecond', system)),
    chunkCpuUs: both((system) => paired('chunkCpuUs', system)),
    addedP50Us: both((system) => added('latencyP50Us', system)),
    addedP99Us: both((system) => added('latencyP99Us', system)),
    rssIdleMb: both((system) => plain('rssIdleMb', system)),
    rssLoadMb: both((system) => paired('rssLoadMb', system)),
    startMs: both((system) => plain('startMs', system)),
  }
}

type Row = {
  readonly name: string
  readonly digits: number
  readonly ratio?: keyof Ratios
  of(figures: Figures, all: All): number
}

const rows: readonly Row[] = [
  { name: 'CPU µs per request', digits: 0, ratio: 'requestCpuUs', of: (f) => f.requestCpuUs },
  { name: 'CPU µs per relayed event', digits: 1, ratio: 'chunkCpuUs', of: (f) => f.chunkCpuUs },
  { name: 'client reads per event', digits: 2, of: (f) => f.readsPerEvent },
  { name: 'requests/s, one core', digits: 0, ratio: 'requestsPerSecond', of: (f) => f.requestsPerSecond },
  { name: 'latency p50 µs', digits: 0, of: (f) => f.latencyP50Us },
  { name: 'latency p99 µs', digits: 0, of: (f) => f.latencyP99Us },
  { name: 'added p50 µs', digits: 0, ratio: 'addedP50Us', of: (f, all) => f.latencyP50Us - all.upstream.latencyP50Us },
  { name: 'added p99 µs', digits: 0, ratio: 'addedP99Us', of: (f, all) => f.latencyP99Us - all.upstream.latencyP99Us },
  { name: 'RSS idle MB', digits: 0, ratio: 'rssIdleMb', of: (f) => f.rssIdleMb },
  { name: 'RSS under load MB', digits: 0, ratio: 'rssLoadMb', of: (f) => f.rssLoadMb },
  { name: 'cold start ms', digits: 0, ratio: 'startMs', of: (f) => f.startMs },
]

export function printTable(all: All, ratios: Ratios): void {
  const head = ['', 'upstream', 'bare proxy', 'counting', 'strict', 'counting/bare', 'strict/bare']
  const lines = rows.map((row) => {
    const ratio = row.ratio === undefined ? undefined : ratios[row.ratio]
    return [
      row.name,
      ...[all.upstream, all.bare, all.counting, all.strict].map((of) => row.of(of, all).toFixed(row.digits)),
      ratio === undefined ? '' : `${ratio.counting.toFixed(2)}x`,
      ratio === undefined ? '' : `${ratio.strict.toFixed(2)}x`,
    ]
  })
  const widths = head.map((_, column) => Math.max(...[head, ...lines].map((line) => line[column]?.length ?? 0)))
  const write = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' | ')} |`
  console.log(write(head))
  console.log(`|${widths.map((width, i) => (i === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`)
  for (const line of lines) console.log(write(line))
}
