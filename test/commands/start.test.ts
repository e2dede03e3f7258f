import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '../support/gateway.ts'
import { makeCli, type Cli } from '../support/cli.ts'

// Every command is a process of its own, and machines that test are busy.
setDefaultTimeout(120_000)

let cli: Cli
beforeEach(() => {
  cli = makeCli()
})
afterEach(() => cli.close())

const bootstrapKey = `sk-${'b'.repeat(32)}`

/** The curl of a greeting, as one would copy it. */
function curlIn(output: string): string {
  return /^ {2}curl[^]*?\}'$/m.exec(output)?.[0] ?? ''
}

async function paste(command: string, variables: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(['sh', '-c', command], {
    env: { PATH: process.env['PATH'] ?? '', ...variables },
    stderr: 'ignore',
  })
  return new Response(child.stdout).text()
}

const hasCurl = Bun.which('curl') !== null

describe('the greeting', () => {
  test('the keys are printed by the first start, and by no other', async () => {
    const first = await cli.serve()
    expect(first.key).toMatch(/^sk-[\w-]{40,}$/)
    expect(first.output()).toMatch(/^ {2}adm-[\w-]{40,}$/m)
    expect(first.output()).not.toContain('never refused for lack of funds')
    expect((await first.chat()).status).toBe(200)
    first.signal('SIGTERM')
    expect(await first.exited).toBe(0)

    const second = await cli.serve()
    expect(second.key).toBeUndefined()
    expect(second.output()).not.toMatch(/sk-\w|adm-\w/)
    expect(second.output()).toContain('npx turnpike keys create --account demo')
    expect(second.output()).toContain('"Authorization: Bearer $TURNPIKE_KEY"')
    expect((await second.chat({}, first.key)).status).toBe(200)
  })

  test.skipIf(!hasCurl)('its curl command works as pasted', async () => {
    const { output } = await cli.serve()
    expect(JSON.parse(await paste(curlIn(output())))).toMatchObject({ object: 'chat.completion' })
  })

  test.skipIf(!hasCurl)(
    'its curl command refers to a given key by its variable, and the key is not printed',
    async () => {
      const variables = { TURNPIKE_BOOTSTRAP_KEY: bootstrapKey }
      const { output } = await cli.serve([], variables)
      expect(output()).not.toContain(bootstrapKey)
      expect(curlIn(output())).toContain('$TURNPIKE_BOOTSTRAP_KEY')
      // The examples in docs/ have a key by that name.
      await until(() => output().includes(' TURNPIKE_KEY=$TURNPIKE_BOOTSTRAP_KEY\n'))
      expect(JSON.parse(await paste(curlIn(output()), variables))).toMatchObject({ object: 'chat.completion' })
    },
  )

  test('its example in real mode names a model that is served', async () => {
    const { output, url, key } = await cli.serve([], { DEEPSEEK_API_KEY: 'not-used' })
    const model = /"model": "([^"]+)"/.exec(curlIn(output()))?.[1]
    const answer = await fetch(`${url}/v1/models/${model}`, { headers: { authorization: `Bearer ${key}` } })
    expect(await answer.json()).toMatchObject({ id: model, owned_by: 'deepseek', capabilities: ['chat'] })
    expect(output()).toMatch(/^Its account "main" is metered and never refused for lack of funds/m)
  })
})

test.each(['0.0.0.0', '*'])('a gateway on all addresses (%s) prints ones that work, and a warning', async (HOST) => {
  const remark = 'Links to kept results work only on this machine, until publicUrl'
  const { output, url, key } = await cli.serve([], { HOST })
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  expect(output()).toContain(remark)
  const mcpUrl = /tool server for agents \(MCP\) is at (\S+)/.exec(output())?.[1]
  const answer = await fetch(String(mcpUrl), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  })
  expect(await answer.text()).toContain('"result":{}')
  cli.write('turnpike.yaml', 'publicUrl: https://gateway.example.com\n')
  expect((await cli.run(['check'], { HOST })).out).not.toContain(remark)
})

test('the greeting says when no simulators answer at SANDBOX_URL', async () => {
  const { output } = await cli.serve([], { SANDBOX_URL: 'http://127.0.0.1:1' })
  expect(output()).toContain('simulators are asked (http://127.0.0.1:1)')
  await until(() => output().includes('no simulators answer at SANDBOX_URL (http://127.0.0.1:1)'))
})

test('the greeting names variables that are not used, and says how many prices are unverified', async () => {
  const sandbox = await cli.serve([], { AZURE_OPENAI_API_KEY: 'azure-canary' })
  expect(sandbox.output()).toMatch(/^AZURE_OPENAI_API_KEY is set and not used: vendor azure needs a channel/m)
  expect(sandbox.output()).not.toMatch(/unverified|azure-canary/)
  sandbox.signal('SIGTERM')
  await sandbox.exited
  const real = await cli.serve([], { PERPLEXITY_API_KEY: 'x' })
  expect(real.output()).toMatch(/^\d+ of these models have unverified prices: npx turnpike models says which/m)
  expect(real.output()).not.toContain('not used')
})

test('a start without a vendor says why the sandbox is off once a real account exists, and so does check', async () => {
  const remark = 'The sandbox is off because a real account exists: sandbox: true in turnpike.yaml turns it on.'
  const real = await cli.serve([], { OPENAI_API_KEY: 'x' })
  real.signal('SIGTERM')
  await real.exited
  const without = await cli.serve()
  expect([real.output().includes(remark), without.output().includes(remark)]).toEqual([false, true])
  expect((await cli.run(['check'])).out).toContain(remark)
  cli.write('turnpike.yaml', 'sandbox: true\n')
  expect((await cli.run(['check'])).out).toContain('simulators answer')
  cli.write('turnpike.yaml', 'sandbox: false\n')
  expect((await cli.run(['check'])).out).not.toContain(remark)
})

test('the greeting warns when TURNPIKE_SECRET differs from the secret used before', async () => {
  const first = await cli.serve()
  first.signal('SIGTERM')
  await first.exited
  const kept = (await Bun.file(join(cli.folder, 'data/secret')).text()).trim()
  const remark = 'holds a different secret than TURNPIKE_SECRET'
  expect((await cli.run(['check'], { TURNPIKE_SECRET: kept })).out).not.toContain(remark)
  const second = await cli.serve([], { TURNPIKE_SECRET: 's'.repeat(32) })
  expect(second.output()).toContain(`${join(cli.folder, 'data/secret')} ${remark}`)
  const last = 'the last start on this database used a different TURNPIKE_SECRET'
  expect([first.output().includes(last), second.output().includes(last)]).toEqual([false, true])
  expect(second.output()).not.toContain(kept)
  expect((await second.chat({}, first.key)).status).toBe(401)
})

test('a start in strict billing first posts what the journal owes and gives back what was leased', async () => {
  const leased = await cli.serve()
  const answer = await leased.chat()
  expect(answer.status).toBe(200)
  process.kill(leased.pid, 'SIGKILL')
  await leased.exited
  cli.write('turnpike.yaml', 'billing: { mode: strict }\n')
  const strict = await cli.serve()
  const { data } = await cli.json<{ data: { cost: string }[] }>(['requests', 'list'])
  expect(data.map(({ cost }) => cost)).toEqual([answer.headers.get('x-turnpike-cost') ?? ''])
  expect((await strict.chat({}, leased.key)).status).toBe(200)
  strict.signal('SIGTERM')
  expect(await strict.exited).toBe(0)
  expect(await cli.json(['reconcile'])).toMatchObject({ verdict: 0, breaches: [], leases: [], holds: [] })
})

describe('a start that is refused', () => {
  const postgres = 'postgres://turnpike:hidden-password@127.0.0.1:1/none'

  test.each([
    {
      name: 'a short secret',
      variables: { TURNPIKE_SECRET: 's'.repeat(31) },
      says: 'TURNPIKE_SECRET must be at least 32',
    },
    {
      name: 'a malformed key',
      variables: { TURNPIKE_BOOTSTRAP_KEY: 'sk-short' },
      says: 'TURNPIKE_BOOTSTRAP_KEY must be',
    },
    {
      name: 'a bootstrap key without sk-',
      variables: { TURNPIKE_BOOTSTRAP_KEY: 'b'.repeat(40) },
      says: 'must be sk- and',
    },
    {
      name: "a malformed operator's key",
      variables: { TURNPIKE_ADMIN_KEY: bootstrapKey },
      says: 'TURNPIKE_ADMIN_KEY must be',
    },
    { name: 'PostgreSQL without a secret', variables: { DATABASE_URL: postgres }, says: 'TURNPIKE_SECRET is required' },
  ])('$name is refused at once, in one line that does not repeat the value', async ({ variables, says }) => {
    const startedAt = performance.now()
    const { code, out, err } = await cli.run(['serve'], variables)
    const ms = performance.now() - startedAt
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err.trimEnd().split('\n')).toEqual([expect.stringContaining(says)])
    for (const value of Object.values(variables)) expect(err).not.toContain(value)
    // Two seconds are promised, and several times that granted to a busy machine. What waits for a database never ends.
    expect(ms).toBeLessThan(15_000)
  })

  test.each([
    { of: 'the gateway', args: ['serve'], variables: (port: string) => ({ PORT: port }), setting: 'PORT' },
    {
      of: 'the simulators alone',
      args: ['sandbox'],
      variables: (port: string) => ({ SANDBOX_PORT: port }),
      setting: 'SANDBOX_PORT',
    },
    { of: 'the simulators alone', args: ['sandbox', '--port', ':port'], variables: () => ({}), setting: '--port' },
  ])('a taken port of $of is refused in one line that names $setting', async ({ args, variables, setting }) => {
    const taken = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('') })
    const port = String(taken.port)
    const ran = await cli.run(
      args.map((arg) => arg.replace(':port', port)),
      variables(port),
    )
    await taken.stop(true)
    const err = `turnpike: port ${port} of 127.0.0.1 is in use: give another as ${setting}, or 0 for a free one\n`
    expect(ran).toMatchObject({ code: 1, out: '', err })
  })

  test('an address that is not of this machine is refused in a message that names it', async () => {
    // An address reserved for documentation, which no machine has.
    const { code, err } = await cli.run(['serve'], { HOST: '203.0.113.9', PORT: '0' })
    expect(code).toBe(1)
    expect(err).toStartWith('turnpike: port 0 of 203.0.113.9 (PORT) cannot be opened: EADDRNOTAVAIL')
  })

  test.each([
    { HOST: '999.1.1.1', PORT: '0' },
    { HOST: '999.1.1.1', PORT: '47811' },
    { ADMIN_HOST: 'no-such-host.invalid', PORT: '0', ADMIN_PORT: '0' },
  ])('an invalid address is refused in one line that names it: %p', async (variables) => {
    const { code, err } = await cli.runAlone(['serve'], variables)
    const [setting, host] = 'HOST' in variables ? ['PORT', '999.1.1.1'] : ['ADMIN_PORT', 'no-such-host.invalid']
    const said = `"${host}" is not an address that this machine can listen on (for ${setting})`
    expect([code, err]).toEqual([1, `turnpike: ${said}\n`])
  })

  test('a host name that does not resolve is refused in the same words on the second start', async () => {
    const variables = { HOST: 'no-such-host.invalid', PORT: '0', ADMIN_PORT: '0' }
    const { err } = await cli.runAlone(['serve'], variables)
    expect(err).toContain('is not an address that this machine can listen on')
    // Once it has read a file, the runtime reports the same failure under another name.
    expect((await cli.runAlone(['serve'], variables)).err).toBe(err)
  })

  test('an unusable folder and an invalid port are refused in one line that names the setting', async () => {
    const given = { TURNPIKE_DATA: '/dev/null/data', TURNPIKE_SECRET: 's'.repeat(32) }
    const folder = await cli.run(['serve'], { ...given, PORT: '0', ADMIN_PORT: '0' })
    expect([folder.code, folder.err]).toEqual([
      1,
      expect.stringMatching(/^turnpike: \/dev\/null\/data cannot be used \(TURNPIKE_DATA names the folder\): /),
    ])
    const port = await cli.run(['serve'], { PORT: 'abc' })
    expect([port.code, port.err]).toEqual([1, 'turnpike: PORT must be a port from 0 to 65535; 0 takes a free one\n'])
  })

  test('a second gateway on the same folder is refused, and the first goes on serving', async () => {
    const first = await cli.serve()
    const { code, err } = await cli.run(['serve'])
    expect(code).toBe(1)
    expect(err).toStartWith('turnpike: Another gateway is running on ')
    expect((await first.chat()).status).toBe(200)
  })
})
