import { parseArgs } from 'node:util'
import { formatDollars } from '../../src/base/money.ts'
import { startPostgres } from '../support/postgres.ts'
import { run, type Summary } from './campaign.ts'

/**
 * `npm run chaos [-- --kills 240 --seed 1 --engine sqlite|postgres --outage]`: gateways killed under load on both engines,
 * and what the books say afterwards. Exit 1 where anything is off by a nano.
 */
const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '240' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    engine: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
})
const kills = Number(values.kills)
const seed = Number(values.seed)
const say = (line: string) => process.stdout.write(`${line}\n`)
const told = values.verbose ? { say } : {}

async function campaigns(): Promise<Summary[]> {
  const done: Summary[] = []
  if (values.engine !== 'postgres') {
    say(`SQLite, one node, seed ${seed}`)
    const share = values.engine === undefined ? Math.ceil(kills / 3) : kills
    done.push(await run({ engine: 'sqlite', nodes: 1, kills: share, clients: 16, seed, ...told }))
  }
  if (values.engine !== 'sqlite') {
    say(`PostgreSQL, three nodes, seed ${seed + 1}`)
    const server = await startPostgres()
    try {
      const databaseUrl = await server.emptyDatabase()
      const share = values.engine === undefined ? Math.floor((kills * 2) / 3) : kills
      done.push(
        await run({ engine: 'postgres', nodes: 3, databaseUrl, kills: share, clients: 24, seed: seed + 1, ...told }),
      )
    } finally {
      await server.stop()
    }
  }
  return done
}

const columns = [
  ['engine', ({ engine, nodes }: Summary) => `${engine} × ${nodes}`],
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

const summaries = await campaigns()
say(`\n| ${columns.map(([name]) => name).join(' | ')} |`)
say(`|${'---|'.repeat(columns.length)}`)
for (const summary of summaries) say(`| ${columns.map(([, show]) => show(summary)).join(' | ')} |`)
for (const { engine, killedAt, wrong } of summaries) {
  say(
    `\n${engine}: killed ${Object.entries(killedAt)
      .map(([how, count]) => `${how} ${count}`)
      .join(', ')}`,
  )
  for (const line of wrong.slice(0, 50)) say(`WRONG ${line}`)
  if (wrong.length > 50) say(`WRONG and ${wrong.length - 50} more`)
}
process.exitCode = summaries.some(({ wrong }) => wrong.length > 0) ? 1 : 0
