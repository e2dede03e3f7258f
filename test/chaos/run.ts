import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { taskCrashPoints } from '../../src/base/crash-points.ts'
import { formatDollars } from '../../src/base/money.ts'
import { startPostgres } from '../support/postgres.ts'
import { run, type Summary } from './campaign.ts'
import { runTasks } from './tasks.ts'

/**
 * `npm run chaos [-- --kills 240 --seed 1 --engine sqlite|postgres]`: kills gateways under load on both engines, and
 * checks the books afterwards. `-- --outage` instead makes the database hang and die for half a minute; `-- --tasks`
 * instead uses video tasks. Exits with 1 if anything is off by a nano.
 */
const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '240' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    engine: { type: 'string' },
    outage: { type: 'boolean', default: false },
    tasks: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
})
const kills = Number(values.kills)
const seed = Number(values.seed)
const say = (line: string) => process.stdout.write(`${line}\n`)
const told = values.verbose ? { say } : {}

async function campaigns(): Promise<Summary[]> {
  const { engine } = values
  const share = (part: number) => Math.ceil(engine === undefined ? kills * part : (kills * part) / engineShare(engine))
  const done: Summary[] = []
  if (engine !== 'postgres') {
    say(`SQLite, one node, seed ${seed}`)
    done.push(await run({ engine: 'sqlite', nodes: 1, kills: share(0.3), clients: 16, seed, ...told }))
    say('SQLite, one node, booked at once')
    done.push(await run({ engine: 'sqlite', nodes: 1, mode: 'strict', kills: share(0.1), clients: 16, seed, ...told }))
  }
  if (engine !== 'sqlite') {
    say(`PostgreSQL, three nodes, seed ${seed + 1}`)
    const server = await startPostgres()
    try {
      const databaseUrl = await server.emptyDatabase()
      const campaign = { databaseUrl, kills: share(0.6), clients: 24, seed: seed + 1, ...told }
      done.push(await run({ engine: 'postgres', nodes: 3, ...campaign }))
    } finally {
      await server.stop()
    }
  }
  return done
}

function engineShare(engine: string): number {
  return engine === 'postgres' ? 0.6 : 0.4
}

const columns = [
  ['engine', ({ engine, nodes, mode }: Summary) => `${engine} × ${nodes}, ${mode}`],
  ['requests', ({ requests }: Summary) => String(requests)],
  ['kills', (summary: Summary) => String(summary.kills)],
  ['vendor-billed calls', ({ vendorCalls }: Summary) => String(vendorCalls)],
  ['billed', ({ vendorTotal }: Summary) => `$${formatDollars(vendorTotal)}`],
  ['difference', ({ difference }: Summary) => `$${formatDollars(difference)}`],
  ['duplicates', ({ duplicates }: Summary) => String(duplicates)],
  ['holds left', ({ holdsLeft }: Summary) => String(holdsLeft)],
  ['estimated', ({ estimated }: Summary) => String(estimated)],
  ['corrected', ({ corrected }: Summary) => String(corrected)],
  ['clients saw the end', ({ clientsSawEnd }: Summary) => String(clientsSawEnd)],
  ['seconds', ({ seconds }: Summary) => String(seconds)],
] as const

/** The same tests as in `npm test`, with a longer outage. */
async function outage(): Promise<number> {
  const tests = Bun.spawn([process.execPath, 'test', join(import.meta.dir, '../faults/database.test.ts')], {
    env: { ...process.env, CHAOS_OUTAGE_MS: '30000' },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return tests.exited
}

/** Fires every crash point of a task again and again: `kills` in total over both engines, or on the chosen one. */
async function tasks(): Promise<number> {
  const rounds = Math.ceil(kills / (taskCrashPoints.length * (values.engine === undefined ? 2 : 1)))
  const outcomes = []
  if (values.engine !== 'postgres') outcomes.push(await runTasks({ engine: 'sqlite', nodes: 1, rounds, seed, ...told }))
  if (values.engine !== 'sqlite') {
    const server = await startPostgres()
    try {
      const databaseUrl = await server.emptyDatabase()
      outcomes.push(await runTasks({ engine: 'postgres', nodes: 3, databaseUrl, rounds, seed: seed + 1, ...told }))
    } finally {
      await server.stop()
    }
  }
  for (const { wrong, killedAt, charged, ...counts } of outcomes) {
    say(JSON.stringify({ ...counts, charged: formatDollars(charged), killedAt }))
    for (const line of wrong.slice(0, 50)) say(`WRONG ${line}`)
  }
  return outcomes.some(({ wrong }) => wrong.length > 0) ? 1 : 0
}

function report(summaries: readonly Summary[]): number {
  say(`\n| ${columns.map(([name]) => name).join(' | ')} |`)
  say(`|${'---|'.repeat(columns.length)}`)
  for (const summary of summaries) say(`| ${columns.map(([, show]) => show(summary)).join(' | ')} |`)
  for (const { engine, mode, killedAt, wrong } of summaries) {
    const kills = Object.entries(killedAt).map(([how, count]) => `${how} ${count}`)
    say(`\n${engine}, ${mode}: killed ${kills.join(', ')}`)
    for (const line of wrong.slice(0, 50)) say(`WRONG ${line}`)
    if (wrong.length > 50) say(`WRONG and ${wrong.length - 50} more`)
  }
  return summaries.some(({ wrong }) => wrong.length > 0) ? 1 : 0
}

process.exitCode = values.outage ? await outage() : values.tasks ? await tasks() : report(await campaigns())
