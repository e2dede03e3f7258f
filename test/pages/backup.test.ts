import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { makeCli, type Cli, type Served } from '../support/cli.ts'
import { until } from '../support/gateway.ts'

// Every command is a process of its own, and machines that test are busy.
setDefaultTimeout(120_000)

const page = await Bun.file(new URL('../../docs/operators.md', import.meta.url)).text()
const copying = /## Backups and upgrades[^]*?```sh\n([^]*?)```/.exec(page)?.[1] ?? ''

let cli: Cli
beforeEach(() => {
  cli = makeCli()
})
afterEach(() => cli.close())

/** Of the first account, in nano-dollars. */
function balance(): number {
  const database = new Database(join(cli.folder, 'data/turnpike.sqlite'), { readonly: true })
  const account = database.query<{ posted: number }, []>("select posted from account where name = 'demo'").get()
  database.close()
  if (account === null) throw new Error('there is no first account')
  return account.posted
}

/** One answer, and its charge in the database: a running gateway posts it within moments. */
async function charged(gateway: Served, key: string | undefined): Promise<number> {
  const before = balance()
  expect((await gateway.chat({}, key)).status).toBe(200)
  await until(() => balance() !== before)
  return balance()
}

test('a gateway starts on the copy that docs/operators.md describes, with its balance and keys', async () => {
  const first = await cli.serve()
  const then = await charged(first, first.key)
  const endless = { stream: true, messages: [{ role: 'user', content: 'sandbox:endless sandbox:pace=100' }] }
  const underWay = await first.chat(endless)
  const child = Bun.spawn(['sh', '-ec', copying.replace('npx bun', '"$0"'), process.execPath], {
    cwd: cli.folder,
    stderr: 'pipe',
  })
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ''])
  await underWay.body?.cancel()
  await charged(first, first.key)
  first.signal('SIGTERM')
  expect(await first.exited).toBe(0)

  renameSync(join(cli.folder, 'data'), join(cli.folder, 'lost'))
  mkdirSync(join(cli.folder, 'data'), { mode: 0o700 })
  for (const name of ['turnpike.sqlite', 'node', 'secret']) {
    renameSync(join(cli.folder, 'backup', name), join(cli.folder, 'data', name))
  }
  const second = await cli.serve()
  expect(second.key).toBeUndefined()
  expect(balance()).toBe(then)
  await charged(second, first.key)
  second.signal('SIGTERM')
  expect(await second.exited).toBe(0)
  // Nothing stays held for the request that ran while the copy was made.
  expect(await cli.json(['reconcile'])).toMatchObject({ verdict: 0, breaches: [], leases: [], holds: [] })
})
