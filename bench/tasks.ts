import { Database } from 'bun:sqlite'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pinned, startChild, type Child } from './control.ts'
import { benchKey, plainBody } from './fixtures.ts'
import { openLoop, post } from './load.ts'
import { watchOthers } from './others.ts'

/**
 * `npm run bench:tasks`: measures a node that polls ten thousand video tasks which never end, in several situations,
 * and the latency of chat beside it. See "Ten thousand open tasks" in docs/performance.md.
 */
const taskCount = 10_000
const creatingAtOnce = 32
const settleMs = 3_000
const chatEveryMs = 20
const ask = JSON.stringify({ model: 'wan2.6-t2v', input: { prompt: 'A fox. sandbox:stuck sandbox:queued=0' } })

/** Over how many channels the tasks are spread, and `tasks.pollSeconds`. */
type Situation = {
  readonly name: string
  readonly channels: number
  readonly pollSeconds: number
  readonly ms: number
  /** No task is due, which shows what the rest costs. */
  readonly isAsleep?: true
}

const situations: readonly Situation[] = [
  { name: 'none due', channels: 16, pollSeconds: 30, ms: 8_000, isAsleep: true },
  { name: '16 channels, every 90 s', channels: 16, pollSeconds: 30, ms: 30_000 },
  { name: '84 channels, every 15 s', channels: 84, pollSeconds: 5, ms: 12_000 },
  { name: '1 channel, every 15 s', channels: 1, pollSeconds: 5, ms: 8_000 },
]

const results = join(import.meta.dir, 'results')
mkdirSync(results, { recursive: true })
const dataFolder = mkdtempSync(join(results, 'data-'))
const running = new Set<Child>()

async function started(core: 0 | 1, script: string, args: readonly string[]): Promise<Child> {
  const child = await startChild(core, script, args)
  running.add(child)
  return child
}

async function stop(child: Child): Promise<void> {
  running.delete(child)
  await child.stop()
}

const startGateway = (upstream: string, channels: number, pollSeconds: number) =>
  started(0, 'task-gateway.ts', [upstream, dataFolder, String(channels), String(pollSeconds)])

/** Creates tasks by the public API, so that holds, requests and the vendor's side exist too. Gives tasks per second. */
async function createTasks(port: number): Promise<number> {
  const startedAt = performance.now()
  let left = taskCount
  await Promise.all(
    Array.from({ length: creatingAtOnce }, async () => {
      while (left-- > 0) {
        const answer = await fetch(`http://127.0.0.1:${port}/v1/videos/generations`, {
          method: 'POST',
          headers: { authorization: `Bearer ${benchKey}`, 'content-type': 'application/json' },
          body: ask,
        })
        const text = await answer.text()
        if (answer.status !== 202) throw new Error(`answered ${answer.status}: ${text}`)
      }
    }),
  )
  return taskCount / ((performance.now() - startedAt) / 1000)
}

const slowestTimes = 3 // `slowestMs` in src/tasks/pace.ts
const hourMs = 3_600_000

function withDatabase<T>(work: (db: Database) => T): T {
  const db = new Database(join(dataFolder, 'turnpike.sqlite'))
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/**
 * Makes the tasks look as if they had run for long: each is polled as rarely as tasks ever are, and the polls are
 * spread. No node runs meanwhile.
 */
function arrange({ channels, pollSeconds, isAsleep }: Situation): void {
  const roundMs = slowestTimes * pollSeconds * 1000
  withDatabase((db) => {
    db.run(
      `update task set channel = 'video-' || (rowid % ?), polls = 20, failures = 0, lost = 0, claim_owner = null,
        claim_until = null, deadline = ?, next_poll_at = ? + abs(random() % ?)`,
      [channels, Date.now() + 24 * hourMs, Date.now() + (isAsleep === true ? hourMs : settleMs / 2), roundMs],
    )
    // A trigger records when a task is claimed, and how much later than planned that is.
    db.run('create table if not exists bench_look (at integer not null, lag integer not null, channel text not null)')
    db.run(`create trigger if not exists bench_look after update of claim_until on task
      when new.claim_until is not null begin
        insert into bench_look select at, at - new.next_poll_at, new.channel from (select cast(unixepoch('subsec') * 1000 as integer) at);
      end`)
  })
}

type Look = { readonly at: number; readonly lag: number; readonly channel: string }

function looksBetween(from: number, to: number): Look[] {
  return withDatabase((db) =>
    db.query<Look, [number, number]>('select at, lag, channel from bench_look where at between ? and ?').all(from, to),
  )
}

type Overdue = { readonly tasks: number; readonly longestMs: number | null }

/** The lag is known only of polls that began; for the others, this is how long they have waited by now. */
function overdue(): Overdue | null {
  const sql = 'select count(*) tasks, ?1 - min(next_poll_at) longestMs from task where next_poll_at < ?1'
  return withDatabase((db) => db.query<Overdue, [number]>(sql).get(Date.now()))
}

type Figures = {
  readonly looks: readonly Look[]
  readonly seconds: number
  readonly left: Overdue | null
  readonly cpuShare: number
  readonly rssMb: number
  readonly chatUs: readonly number[]
  readonly othersShare: number
}

async function measure(situation: Situation, upstream: string): Promise<Figures> {
  arrange(situation)
  const gateway = await startGateway(upstream, situation.channels, situation.pollSeconds)
  const chat = post(gateway.port, benchKey, plainBody)
  await openLoop(chat, { everyMs: chatEveryMs, ms: settleMs })
  const others = watchOthers([...running])
  const before = await gateway.vitals()
  const from = Date.now()
  const chatUs = await openLoop(chat, { everyMs: chatEveryMs, ms: situation.ms })
  const to = Date.now()
  const after = await gateway.vitals()
  const othersShare = await others()
  const left = overdue()
  await stop(gateway)
  return {
    looks: looksBetween(from, to),
    seconds: (to - from) / 1000,
    left,
    cpuShare: (after.cpuMicros - before.cpuMicros) / 1000 / (to - from),
    rssMb: after.peakRssBytes / 2 ** 20,
    chatUs,
    othersShare,
  }
}

function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}

/** The most polls that began within one second, which a vendor would call a burst. */
function busiestSecond(looks: readonly Look[]): number {
  const times = looks.map(({ at }) => at).toSorted((a, b) => a - b)
  let first = 0
  let most = 0
  for (const [last, at] of times.entries()) {
    while ((times[first] ?? at) <= at - 1000) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

const lags = ({ looks }: Figures) => looks.map(({ lag }) => lag)

const rows: readonly (readonly [name: string, of: (figures: Figures) => number, digits?: number])[] = [
  ['polls per second', ({ looks, seconds }) => looks.length / seconds],
  ['polls in the busiest second', ({ looks }) => busiestSecond(looks)],
  ['poll lag p50, ms', (figures) => percentile(lags(figures), 0.5)],
  ['poll lag p99, ms', (figures) => percentile(lags(figures), 0.99)],
  ['channels polled', ({ looks }) => new Set(looks.map(({ channel }) => channel)).size],
  ['overdue at the end, tasks', ({ left }) => left?.tasks ?? Number.NaN],
  ['longest overdue at the end, ms', ({ left }) => left?.longestMs ?? Number.NaN],
  ['CPU, % of a core', ({ cpuShare }) => cpuShare * 100],
  ['memory at most, MB', ({ rssMb }) => rssMb],
  ['chat latency p50, ms', ({ chatUs }) => percentile(chatUs, 0.5) / 1000, 1],
  ['chat latency p99, ms', ({ chatUs }) => percentile(chatUs, 0.99) / 1000, 1],
  ['others took, % of the machine', ({ othersShare }) => othersShare * 100],
]

function print(measured: readonly Figures[]): void {
  console.log(`| | ${situations.map(({ name }) => name).join(' | ')} |`)
  console.log(`|---|${'---:|'.repeat(situations.length)}`)
  for (const [name, of, digits = 0] of rows) {
    const cells = measured.map((figures) => of(figures)).map((n) => (Number.isNaN(n) ? '' : n.toFixed(digits)))
    console.log(`| ${name} | ${cells.join(' | ')} |`)
  }
}

async function run(): Promise<void> {
  if (pinned(1).length > 0) Bun.spawnSync(['taskset', '-a', '-cp', '1', String(process.pid)])
  const beganAt = performance.now()
  const vendor = await started(1, 'task-vendor.ts', [])
  const upstream = await (await fetch(`http://127.0.0.1:${vendor.port}/`)).text()
  const creator = await startGateway(upstream, 16, 3_600)
  const perSecond = await createTasks(creator.port)
  await stop(creator)
  process.stderr.write(`${taskCount} tasks, created at ${Math.round(perSecond)} a second\n`)
  const measured: Figures[] = []
  for (const situation of situations) measured.push(await measure(situation, upstream))
  print(measured)
  console.log(
    `\nCreated at ${Math.round(perSecond)} a second; ${Math.round((performance.now() - beganAt) / 1000)} s in all.`,
  )
}

try {
  await run()
} finally {
  await Promise.all([...running].map((child) => child.stop()))
  rmSync(dataFolder, { recursive: true, force: true })
}
process.exit(0)
