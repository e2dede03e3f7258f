import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Client } from 'pg'
import { checkLedger } from '../../src/store/check.ts'
import { openStore } from '../../src/store/open.ts'
import { makeCli, type Cli, type Served } from '../support/cli.ts'
import { startTestGateway, until } from '../support/gateway.ts'
import { sharedPostgres } from '../support/postgres.ts'

// Gateways and some commands are processes of their own, and machines that test are busy.
setDefaultTimeout(120_000)

type ShownAccount = { id: string; name: string; mode: string; balance: string; unlimited: boolean }
type ShownKey = {
  id: string
  key: string
  account: string
  models: string[] | null
  state: string
  expires_at: number
  metadata: Record<string, string>
}

/** Where the operator's API is, and the key that was printed for it. */
function operatorIn(gateway: Served): readonly [url: string | undefined, key: string | undefined] {
  const [, url] = /operator's API is at (\S+)\/admin/.exec(gateway.output()) ?? []
  const [, key] = /^ {2}(adm-\S+)$/m.exec(gateway.output()) ?? []
  return [url, key]
}

describe('commands beside a running gateway', () => {
  let cli: Cli
  let gateway: Served

  beforeAll(async () => {
    cli = makeCli()
    gateway = await cli.serve()
  })
  afterAll(async () => {
    await cli.close()
  })

  test('an account is created, credited and corrected, and its balance never goes below zero', async () => {
    const made = await cli.json<ShownAccount>(['accounts', 'create', '--name', 'acme', '--credit', '10'])
    expect(made).toMatchObject({ name: 'acme', mode: 'sandbox', balance: '10', unlimited: false })
    expect(await cli.json(['accounts', 'credit', 'acme', '2.5', '--note', 'paid'])).toMatchObject({ balance: '12.5' })
    expect(await cli.json(['accounts', 'credit', made.id, '-0.000000001'])).toMatchObject({ balance: '12.499999999' })

    const refused = await cli.run(['accounts', 'credit', 'acme', '-13'])
    expect(refused).toMatchObject({
      code: 1,
      out: '',
      err: 'turnpike: only $12.499999999 can be taken from "acme"\n',
    })
    const taken = await cli.run(['accounts', 'create', '--name', 'acme'])
    expect(taken).toMatchObject({ code: 1, err: 'turnpike: there is an account "acme" in sandbox mode already\n' })

    const { out } = await cli.run(['accounts', 'list'])
    const [head, ...rows] = out.trimEnd().split('\n')
    expect(head).toMatch(/^NAME +BALANCE +HELD +CAP +STATE +CREATED +ID$/)
    expect(rows.map((row) => row.split(/\s+/).slice(0, 3))).toEqual([
      ['demo', '$100', '$0'],
      ['acme', '$12.499999999', '$0'],
    ])
    // Columns are aligned: the ids begin below their name.
    for (const row of rows) expect(row.indexOf('acc_')).toBe(head?.indexOf('ID') ?? -1)
  })

  test('the credits of an account are listed, newest first', async () => {
    await cli.json(['accounts', 'create', '--name', 'payer', '--credit', '1'])
    await cli.json(['accounts', 'credit', 'payer', '2', '--note', 'invoice 17'])
    const { out } = await cli.run(['accounts', 'credits', 'payer'])
    const [head, ...rows] = out.trimEnd().split('\n')
    expect(head).toMatch(/^TIME +AMOUNT +SOURCE +NOTE +ID$/)
    expect(rows[0]).toMatch(/^\d{4}-\S+ \S+ +\$2 +promo +invoice 17 +txn_/)
    expect(rows[1]).toMatch(/^\d{4}-\S+ \S+ +\$1 +promo +- +txn_/)
    const page = await cli.json<{ data: unknown[]; next: string }>(['accounts', 'credits', 'payer', '--limit', '1'])
    expect(page).toMatchObject({ data: [{ amount: '2', note: 'invoice 17' }], next: expect.stringMatching(/^txn_/) })
    const nobody = await cli.run(['accounts', 'credits', 'nobody'])
    expect(nobody).toMatchObject({ code: 1, err: expect.stringContaining('there is no account "nobody"') })
  })

  test('a refused change of an account says why', async () => {
    await cli.json(['accounts', 'create', '--name', 'one'])
    const taken = await cli.run(['accounts', 'change', 'one', '--name', 'demo'])
    expect(taken).toMatchObject({
      code: 1,
      out: '',
      err: 'turnpike: there is another account of that name in sandbox mode already\n',
    })
    const owing = await cli.json<ShownAccount>(['accounts', 'create', '--name', 'owing', '--unlimited'])
    const { key } = await cli.json<ShownKey>(['keys', 'create', '--account', owing.id])
    expect((await gateway.chat({}, key)).status).toBe(200)
    await until(async () => (await cli.run(['accounts', 'list'])).out.match(/^owing +-\$/m) !== null)
    const { code, err } = await cli.run(['accounts', 'change', 'owing', '--unlimited', 'false'])
    expect(code).toBe(1)
    expect(err).toMatch(/^turnpike: "owing" has a balance of -\$0\.\d+: credit it before making it limited\n$/)
  })

  test('a note that the API would refuse is refused', async () => {
    const { code, err } = await cli.run(['accounts', 'credit', 'demo', '1', '--note', 'x'.repeat(501)])
    expect({ code, err }).toEqual({ code: 1, err: 'turnpike: --note takes at most 500 characters\n' })
  })

  test('a change of an account is shown', async () => {
    await cli.json(['accounts', 'create', '--name', 'paused'])
    const args = ['accounts', 'change', 'paused', '--enabled', 'false', '--unlimited', 'true', '--cap', '5/day']
    const { out } = await cli.run(args)
    expect(out).toMatch(/^state +disabled, unlimited$/m)
    expect(out).toMatch(/^cap +\$5\/day$/m)
  })

  test('an invalid amount is refused in one line', async () => {
    for (const amount of ['ten', '1e3', '0.0000000001', '2000000', '0', '']) {
      const { code, err } = await cli.run(['accounts', 'credit', 'demo', amount])
      expect({ amount, code, lines: err.trim().split('\n').length }).toEqual({ amount, code: 1, lines: 1 })
    }
  })

  test('a key works at once for its models only, spends from its account and stops working once revoked', async () => {
    await cli.json(['accounts', 'create', '--name', 'spender', '--credit', '1'])
    const args = [
      'keys',
      'create',
      '--account',
      'spender',
      '--name',
      'ci',
      '--models',
      'gpt-4o-*, o3',
      '--expires',
      '30d',
      '--metadata',
      'team=blue',
    ]
    const { id, key, models, expires_at, metadata } = await cli.json<ShownKey>(args)
    expect(metadata).toEqual({ team: 'blue' })
    expect(models).toEqual(['gpt-4o-*', 'o3'])
    expect(expires_at * 1000).toBeWithin(Date.now() + 29.9 * 86_400_000, Date.now() + 30 * 86_400_000)

    expect((await gateway.chat({}, key)).status).toBe(200)
    expect((await gateway.chat({ model: 'deepseek-chat' }, key)).status).toBe(404)
    const balance = async () => {
      const { data } = await cli.json<{ data: ShownAccount[] }>(['accounts', 'list'])
      return Number(data.find(({ name }) => name === 'spender')?.balance)
    }
    // A running gateway posts what it has charged within moments.
    await until(async () => (await balance()) < 1)
    expect(await balance()).toBeWithin(0.9, 1)

    const listed = await cli.run(['keys', 'list', '--account', 'spender'])
    expect(listed.out).toContain(`sk-…${key.slice(-4)}`)
    expect(listed.out).not.toContain(key.slice(0, 12))

    const changed = await cli.json(['keys', 'change', id, '--name', 'nightly', '--metadata', 'none'])
    expect(changed).toMatchObject({ id, name: 'nightly', account_name: 'spender', metadata: {} })

    const revoked = await cli.run(['keys', 'revoke', id])
    expect(revoked).toMatchObject({ code: 0, err: '' })
    await until(async () => (await gateway.chat({}, key)).status === 401)
    expect((await cli.run(['keys', 'revoke', id])).out).toBe(`${id} was revoked already.\n`)
    expect((await cli.run(['keys', 'list', '--account', 'spender'])).out).toContain('revoked')
  })

  test("operators' keys are revoked at once, and the next start makes another", async () => {
    const own = makeCli()
    try {
      const first = await own.serve()
      const [url, key] = operatorIn(first)
      const headers = { authorization: `Bearer ${key}` }
      expect((await fetch(`${url}/admin/accounts`, { headers })).status).toBe(200)
      const revoked = await own.run(['keys', 'revoke-operators'])
      expect(revoked).toMatchObject({ code: 0, out: expect.stringMatching(/^1 key of an operator is revoked\. /) })
      expect((await fetch(`${url}/admin/accounts`, { headers })).status).toBe(401)
      expect(await own.json(['keys', 'revoke-operators'])).toEqual({ revoked: 0 })
      first.signal('SIGTERM')
      await first.exited
      const [, next] = operatorIn(await own.serve())
      expect(next).toMatch(/^adm-/)
      expect(next).not.toBe(key)
    } finally {
      await own.close()
    }
  })

  test('changing a key shows the key with its new settings', async () => {
    const { id } = await cli.json<ShownKey>(['keys', 'create', '--account', 'demo'])
    const changed = await cli.json(['keys', 'change', id, '--name', 'ci', '--models', 'o3', '--cap', '5/day'])
    const account = { account: expect.stringMatching(/^acc_/), account_name: 'demo' }
    expect(changed).toMatchObject({ id, ...account, name: 'ci', models: ['o3'], cap: { amount: '5', period: 'day' } })
  })

  test('a new key is shown with its limits and its cap', async () => {
    const { out } = await cli.run(['keys', 'create', '--account', 'demo', '--cap', '5', '--requests-per-minute', '60'])
    expect(out).toMatch(/^limits +60 requests\/min$/m)
    expect(out).toMatch(/^cap +\$5\/total$/m)
  })

  test('the audit of a new key has only what was given', async () => {
    const made = await cli.json<ShownKey>(['keys', 'create', '--account', 'demo', '--cap', '5/day'])
    const [url, key] = operatorIn(gateway)
    const asked = await fetch(`${url}/admin/audit?limit=1`, { headers: { authorization: `Bearer ${key}` } })
    const { data } = (await asked.json()) as { data: { subject: string; detail: unknown }[] }
    expect(data[0]).toMatchObject({ actor: 'cli', action: 'key.create', subject: made.id })
    const { account } = made
    expect(data[0]?.detail).toEqual({ account, hint: made.key.slice(-4), cap: { amount: '5', period: 'day' } })
  })

  test('a model pattern that matches no model causes a warning', async () => {
    const { code, out, err } = await cli.run(['keys', 'create', '--account', 'demo', '--models', 'gpt-*,gtp-*'])
    expect(code).toBe(0)
    expect(out).toMatch(/^ {2}sk-[\w-]{40,}$/m)
    expect(err).toBe('turnpike: warning: no model matches "gtp-*" now\n')

    const { id } = await cli.json<ShownKey>(['keys', 'create', '--account', 'demo'])
    const changed = await cli.run(['keys', 'change', id, '--models', 'gpt-*,gtp-*'])
    expect(changed).toMatchObject({ code: 0, err })
  })

  test.each([
    { args: ['keys', 'create', '--account', 'nobody'], says: 'there is no account "nobody" in sandbox mode' },
    {
      args: ['keys', 'create', '--account', 'demo', '--mode', 'real'],
      says: 'there is one in sandbox mode: --mode sandbox',
    },
    { args: ['keys', 'create', '--account', 'demo', '--expires', 'soon'], says: '"soon" is not a time' },
    { args: ['keys', 'create', '--account', 'demo', '--models', 'gpt-*,'], says: '--models takes ids or patterns' },
    // No model id has a capital letter: this key could never use anything.
    { args: ['keys', 'create', '--account', 'demo', '--models', 'GPT-4o'], says: '--models takes ids or patterns' },
    {
      args: ['keys', 'create', '--account', 'demo', '--name', 'a\u001bb'],
      says: 'a name must have 1 to 100 characters',
    },
    { args: ['keys', 'change', 'key_0'], says: 'no change was given' },
    { args: ['keys', 'change', 'key_0', '--json'], says: 'no change was given' },
    { args: ['accounts', 'change', 'demo'], says: 'no change was given' },
    { args: ['keys', 'revoke', 'key_0'], says: 'there is no key "key_0"' },
    { args: ['accounts', 'create', '--name', ' '], says: 'a name must have 1 to 100 characters' },
    { args: ['accounts', 'list', '--mode', 'both'], says: 'Allowed choices are sandbox, real' },
  ])('$args is refused', async ({ args, says }) => {
    const { code, out, err } = await cli.run(args)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain(says)
  })

  test.each([
    { args: ['check'] },
    { args: ['accounts', 'list'] },
    { args: ['keys', 'list', '--json'] },
    { args: ['accounts', 'credit', 'nobody', '1'] },
    { args: ['keys', 'lost'] },
  ])('$args in a process of its own says the same as beside other commands, and ends', async ({ args }) => {
    expect(await cli.runAlone(args)).toEqual(await cli.run(args))
  })

  test('the ledger balances after all of these commands', async () => {
    const store = await openStore({ file: join(cli.folder, 'data/turnpike.sqlite') })
    expect(await checkLedger(store)).toEqual([])
    await store.close()
  })
})

describe('commands before the first start', () => {
  test('every command on the database says that there is none yet, and creates nothing', async () => {
    const cli = makeCli()
    const commands = [
      'accounts list',
      'accounts create --name x',
      'accounts credit x 1',
      'keys list',
      'keys create --account x',
    ]
    const ran = await Promise.all(commands.map((command) => cli.run(command.split(' '))))
    for (const { code, out, err } of ran) {
      expect({ code, out }).toEqual({ code: 1, out: '' })
      expect(err).toMatch(/^turnpike: there is no database at \S+ yet: start the gateway once first \(npm start\), or/)
      expect(err).toEndWith('or give TURNPIKE_DATA as the gateway has it\n')
    }
    expect(existsSync(join(cli.folder, 'data'))).toBe(false)
    await cli.close()
  })

  test('a database that cannot be opened is named in the error', async () => {
    const cli = makeCli()
    const server = await sharedPostgres()
    mkdirSync(join(cli.folder, 'data'))
    cli.write('data/turnpike.sqlite', 'not a database, whatever its name says')
    const asked = [
      [{}, `${join(cli.folder, 'data/turnpike.sqlite')} cannot be opened: file is not a database`],
      [
        { DATABASE_URL: server.url('nowhere'), TURNPIKE_SECRET: 's'.repeat(32) },
        'of DATABASE_URL cannot be opened: no connection: database "nowhere" does not exist',
      ],
      // As hosted databases give it. The driver would add a warning of many lines about its own next version.
      [
        { DATABASE_URL: `${server.url('nowhere')}?sslmode=require`, TURNPIKE_SECRET: 's'.repeat(32) },
        'of DATABASE_URL cannot be opened: no connection: The server does not support SSL connections',
      ],
    ] as const
    for (const [variables, why] of asked) {
      const { code, out, err } = await cli.run(['accounts', 'list'], variables)
      expect({ code, out, err }).toEqual({ code: 1, out: '', err: `turnpike: the database ${why}\n` })
      expect((await cli.run(['check'], variables)).err).toBe(`the database ${why}\n`)
    }
    await cli.close()
  })

  test('a command waits for a PostgreSQL that is slow to answer', async () => {
    const cli = makeCli()
    const server = await sharedPostgres()
    const url = new URL(await server.freshDatabase())
    let connections = 0
    // The connections that look whether there is a database and whether it is migrated: each is delayed for longer than
    // a request would wait.
    const slow = createServer((near) => {
      const far = connect(Number(url.port), url.hostname)
      const pipe = () =>
        void near
          .on('error', () => far.destroy())
          .pipe(far.on('error', () => near.destroy()))
          .pipe(near)
      if (++connections > 2) pipe()
      else setTimeout(pipe, 1_100)
    })
    await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
    const way = new URL(url)
    way.port = String((slow.address() as AddressInfo).port)
    const variables = { DATABASE_URL: way.href, TURNPIKE_SECRET: 's'.repeat(32) }
    expect(await cli.runAlone(['accounts', 'create', '--name', 'late'], variables)).toMatchObject({ code: 0, err: '' })
    slow.close()
    await cli.close()
  })

  test('a command refuses an empty PostgreSQL database and leaves it empty, and a gateway can still start on it', async () => {
    const server = await sharedPostgres()
    const url = await server.emptyDatabase()
    const cli = makeCli()
    const variables = { DATABASE_URL: url, TURNPIKE_SECRET: 's'.repeat(32) }
    expect((await cli.run(['accounts', 'list'], variables)).err).toContain('nothing in this PostgreSQL database yet')
    const client = new Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query("select relname from pg_class where relnamespace = 'public'::regnamespace")
    await client.end()
    expect(rows).toEqual([])

    const gateway = await cli.serve([], variables)
    const { key } = await cli.json<ShownKey>(['keys', 'create', '--account', 'demo'], variables)
    expect((await gateway.chat({}, key)).status).toBe(200)
    await cli.close()
    await server.dropDatabase(url)
  }, 120_000)
})

test("no key or webhook secret is made under a secret other than the gateway's", async () => {
  // Its secret is in its environment, and not in its folder.
  const gateway = await startTestGateway()
  const cli = makeCli({ data: gateway.folder })
  const { code, err } = await cli.run(['keys', 'create', '--account', 'demo'])
  expect(code).toBe(1)
  expect(err).toContain('give TURNPIKE_SECRET as the gateway has it')
  expect(existsSync(join(gateway.folder, 'secret'))).toBe(false)
  // A webhook secret that no node can read would leave every event of the account unsigned.
  for (const args of [
    ['keys', 'create', '--account', 'demo'],
    ['webhooks', 'secret', 'demo'],
  ]) {
    expect(await cli.run(args, { TURNPIKE_SECRET: 'another secret of enough bytes, surely' })).toMatchObject({
      code: 1,
      out: '',
      err: 'turnpike: the last start on this database used a different secret: give TURNPIKE_SECRET as the gateway has it\n',
    })
  }
  await cli.close()
  await gateway.close()
})
