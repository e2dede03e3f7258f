import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { columnKinds } from '../../src/store/schema.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { makeCli, type Cli, type Served } from '../support/cli.ts'
import { until } from '../support/gateway.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { startReceiver } from '../support/receiver.ts'

// Gateways and some commands are processes of their own, and machines that test are busy.
setDefaultTimeout(120_000)

let cli: Cli
let file: string
beforeEach(() => {
  cli = makeCli()
  file = join(cli.folder, 'data/turnpike.sqlite')
})
afterEach(() => cli.close())

/** The variables of a node that goes on in PostgreSQL. */
async function onPostgres() {
  const url = await (await sharedPostgres()).emptyDatabase()
  return { DATABASE_URL: url, TURNPIKE_SECRET: readFileSync(join(cli.folder, 'data/secret'), 'utf8').trim() }
}

type Tables = Record<keyof typeof columnKinds, unknown[]>

async function tablesOf(store: Store): Promise<Tables> {
  const found: [string, unknown[]][] = []
  for (const table of Object.keys(columnKinds) as (keyof Tables)[]) {
    const rows = await store.db.selectFrom(table).selectAll().execute()
    found.push([table, rows.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))])
  }
  await store.close()
  return Object.fromEntries(found) as Tables
}

function keyOf(row: object): string {
  return JSON.stringify(row, (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
}

/** Does something that fills each of the tables, and is killed with a charge that only its journal knows. */
async function liveAndDie(): Promise<{ key: string; posted: number }> {
  const receiver = await startReceiver()
  const gateway = await cli.serve()
  const key = gateway.key ?? ''
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  await cli.json(['webhooks', 'secret', 'demo'])
  await cli.json(['keys', 'create', '--account', 'demo', '--models', 'gpt-*', '--cap', '5/day'])
  const chat = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Grüße! 🦊' }] }
  expect((await post('/v1/chat/completions', chat, { 'idempotency-key': 'once' })).status).toBe(200)
  const order = {
    model: 'wan2.6-t2v',
    duration: 5,
    resolution: '720p',
    input: { prompt: 'A fox.' },
    webhook_url: receiver.url(),
  }
  expect((await post('/v1/videos/generations', order)).status).toBe(202)
  await until(() => receiver.received.length === 1)
  await until(async () => (await listed('requests')).length === 2)
  expect((await gateway.chat()).status).toBe(200)
  await kill(gateway)
  receiver.close()
  return { key, posted: 2 }
}

async function kill(gateway: Served): Promise<void> {
  process.kill(gateway.pid, 'SIGKILL')
  await gateway.exited
}

async function listed(what: 'requests' | 'tasks', variables = {}): Promise<unknown[]> {
  return (await cli.json<{ data: unknown[] }>([what, 'list'], variables)).data
}

test('a killed node goes on in PostgreSQL with its keys, balances, tasks and unposted charges', async () => {
  const { key, posted } = await liveAndDie()
  const variables = await onPostgres()
  const moved = await cli.json<Record<string, unknown>>(['move-to-postgres'], variables)
  expect(moved).toMatchObject({ accounts: 1, keys: 2, tasks: 1, kept: `${file}.moved` })
  expect(existsSync(file)).toBe(false)
  const [before, after] = [
    await tablesOf(await openStore({ file: `${file}.moved` })),
    await tablesOf(await openStore({ url: variables.DATABASE_URL })),
  ]
  expect(after).toEqual(before)
  expect(Object.keys(before).filter((table) => before[table as keyof Tables].length === 0)).toEqual([])
  // The last charge was in the journal alone.
  expect(before.request).toHaveLength(posted)

  const gateway = await cli.serve([], variables)
  expect(gateway.key).toBeUndefined()
  expect((await gateway.chat({}, key)).status).toBe(200)
  await until(async () => (await listed('requests', variables)).length === posted + 2)
  expect(await listed('tasks', variables)).toHaveLength(1)
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
  expect(await cli.run(['reconcile'], variables)).toMatchObject({ code: 0 })
})

test('nothing is moved while the gateway or another program has it, without a database, to a used one, with another secret, or over an earlier move', async () => {
  const gateway = await cli.serve()
  const variables = await onPostgres()
  const refused = async (given: Record<string, string>) => {
    const { code, out, err } = await cli.run(['move-to-postgres'], given)
    expect([code, out, existsSync(file)]).toEqual([1, '', true])
    return err
  }
  expect(await refused({})).toBe('turnpike: set DATABASE_URL to the PostgreSQL database to move to\n')
  expect(await refused(variables)).toBe(
    `turnpike: a gateway is running on ${join(cli.folder, 'data')}: stop it first\n`,
  )
  await kill(gateway)
  expect(await refused({ ...variables, TURNPIKE_SECRET: 's'.repeat(32) })).toContain(
    'TURNPIKE_SECRET must be the secret',
  )
  const other = await cli.serve([], { ...variables, TURNPIKE_DATA: join(cli.folder, 'other') })
  await kill(other)
  expect(await refused(variables)).toContain('the database already has accounts')

  const fresh = await onPostgres()
  writeFileSync(`${file}.moved`, 'books of an earlier move')
  expect(await refused(fresh)).toBe(`turnpike: ${file}.moved is from an earlier move: put it elsewhere first\n`)
  rmSync(`${file}.moved`)
  const reader = await openStore({ file })
  expect(await refused(fresh)).toBe(`turnpike: another program has ${file} open: end it first\n`)
  await reader.close()
  expect((await cli.run(['move-to-postgres'], fresh)).out).toContain('The old file is kept as')
  expect((await cli.run(['move-to-postgres'], fresh)).err).toBe(`turnpike: there is no database at ${file}\n`)
})
