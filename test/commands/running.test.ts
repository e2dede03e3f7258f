import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { checkLedger } from '../../src/store/check.ts'
import { openStore } from '../../src/store/open.ts'
import { makeCli, type Cli, type Served } from '../support/cli.ts'
import { readExposition } from '../support/exposition.ts'
import { until } from '../support/gateway.ts'

// Every command is a process of its own, and machines that test are busy.
setDefaultTimeout(120_000)

let cli: Cli
beforeEach(() => {
  cli = makeCli()
})
afterEach(() => cli.close())

test('SIGTERM lets a running stream finish, bills it, and exits with 0', async () => {
  const gateway = await cli.serve()
  // Longer than the notice that load balancers get, so that the port is closed while it runs.
  const content = 'sandbox:pace=100 sandbox:tokens=40'
  const response = await gateway.chat({ stream: true, messages: [{ role: 'user', content }] })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = decoder.decode((await reader.read()).value)
  gateway.signal('SIGTERM')
  // npm and a terminal may pass on the same signal twice.
  gateway.signal('SIGTERM')
  await until(() => gateway.output().includes('stopping once requests are done'))
  await until(() =>
    fetch(`${gateway.url}/readyz`).then(
      ({ status }) => status === 503,
      () => true,
    ),
  )
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  expect(text.match(/chat\.completion\.chunk/g)?.length).toBeGreaterThan(40)
  expect(text).toEndWith('data: [DONE]\n\n')
  expect(await gateway.exited).toBe(0)

  const store = await openStore({ file: join(cli.folder, 'data/turnpike.sqlite') })
  expect(await checkLedger(store)).toEqual([])
  const requests = await store.db.selectFrom('request').select(['status', 'basis', 'cost']).execute()
  expect(requests).toEqual([{ status: 200, basis: 'vendor', cost: expect.any(BigInt) }])
  await store.close()
})

test('a second signal cuts a stream short, and counts once even if it is passed on twice', async () => {
  const gateway = await cli.serve()
  const content = 'sandbox:endless sandbox:pace=20'
  const response = await gateway.chat({ stream: true, messages: [{ role: 'user', content }] })
  const answered = response.text()
  gateway.signal('SIGTERM')
  await until(() => gateway.output().includes('stopping once requests are done'))
  await Bun.sleep(1_100) // sooner, it would be the first signal passed on again
  // Two of a kind could arrive as one.
  gateway.signal('SIGTERM')
  gateway.signal('SIGINT')
  expect(await answered).toContain('The gateway is being stopped.')
  expect(await gateway.exited).toBe(0)
  expect(gateway.output().match(/stopping now/g)).toHaveLength(1)

  const { data } = await cli.json<{ data: { id: string }[] }>(['requests', 'list'])
  const { attempts } = await cli.json<{ attempts: { id: string }[] }>(['requests', 'show', data[0]?.id ?? ''])
  cli.write('export.csv', `ref,cost\n${attempts[0]?.id},1\n`)
  const { out } = await cli.run(['reconcile', '--vendor-export', 'export.csv'])
  expect(out).toMatch(/estimated +att_\w+ .*the answer broke off, and what had come was estimated/)
})

/** A start whose database hangs up on everyone. */
async function startWithoutDatabase() {
  let tries = 0
  const database = createServer((socket) => {
    tries++
    socket.destroy()
  })
  await new Promise<void>((resolve) => database.listen(0, '127.0.0.1', resolve))
  const { port } = database.address() as AddressInfo
  const variables = { DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/none`, TURNPIKE_SECRET: 's'.repeat(32) }
  const child = cli.start(['serve'], variables)
  await until(() => tries > 0)
  return { child, tries: () => tries, [Symbol.dispose]: () => void database.close() }
}

test('SIGHUP does not end a process that still waits for its database', async () => {
  using starting = await startWithoutDatabase()
  const { child, tries } = starting
  child.kill('SIGHUP')
  const before = tries()
  await until(() => tries() > before + 1 || child.exitCode !== null || child.signalCode !== null)
  expect({ code: child.exitCode, signal: child.signalCode }).toEqual({ code: null, signal: null })
})

// The kernel drops signals to the first process of a container, unless that listens for them.
test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends a process that still waits for its database, and is listened for',
  async (signal) => {
    using starting = await startWithoutDatabase()
    const { child } = starting
    child.kill(signal)
    await child.exited
    expect({ code: child.exitCode, signal: child.signalCode }).toEqual({ code: 0, signal: null })
  },
)

test('a gateway whose log is no longer read goes on serving', async () => {
  const gateway = await cli.serve()
  await gateway.stopReading()
  gateway.signal('SIGHUP')
  await until(() => gateway.output().includes('turnpike: the log cannot be written: EPIPE'))
  expect((await gateway.chat()).status).toBe(200)
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
})

function priced(markup: string): string {
  return `models: [{ id: gpt-4o-mini, prices: { markup: "${markup}" } }]\n`
}

async function costOf(gateway: Served): Promise<number> {
  return Number((await gateway.chat()).headers.get('x-turnpike-cost'))
}

describe('a changed turnpike.yaml', () => {
  test('a changed file is taken into use by itself, and an invalid one changes nothing', async () => {
    cli.write('turnpike.yaml', priced('1'))
    const gateway = await cli.serve()
    const single = await costOf(gateway)
    expect(single).toBeGreaterThan(0)

    cli.write('turnpike.yaml', priced('3'))
    await until(async () => (await costOf(gateway)) > 2 * single)
    expect(await costOf(gateway)).toBeCloseTo(3 * single, 8)

    cli.write('turnpike.yaml', priced('three'))
    await until(() => gateway.output().includes('the old one stays in use'))
    expect(gateway.output()).toContain('turnpike.yaml:1:')
    expect(await costOf(gateway)).toBeCloseTo(3 * single, 8)

    // Editors replace a file, and may leave it broken for a moment: the next good one is taken.
    cli.write('turnpike.yaml', priced('2'))
    await until(async () => (await costOf(gateway)) < 2.5 * single)
  })

  test('a linked file is taken into use when its folder is replaced, as clusters mount settings', async () => {
    const point = (version: string, markup: string) => {
      mkdirSync(join(cli.folder, version))
      cli.write(`${version}/turnpike.yaml`, priced(markup))
      symlinkSync(version, join(cli.folder, '..next'))
      renameSync(join(cli.folder, '..next'), join(cli.folder, '..current'))
    }
    point('one', '1')
    symlinkSync('..current/turnpike.yaml', join(cli.folder, 'turnpike.yaml'))
    const gateway = await cli.serve()
    const single = await costOf(gateway)
    point('two', '3')
    await until(async () => (await costOf(gateway)) > 2 * single)
  })

  test('a linked file is taken into use when its target is written, also after the link has moved', async () => {
    for (const folder of ['one', 'two', 'links']) mkdirSync(join(cli.folder, folder))
    const point = (to: string) => {
      symlinkSync(`../${to}/mine.yaml`, join(cli.folder, 'links/next'))
      renameSync(join(cli.folder, 'links/next'), join(cli.folder, 'links/turnpike.yaml'))
    }
    cli.write('one/mine.yaml', priced('1'))
    cli.write('two/mine.yaml', priced('3'))
    point('one')
    symlinkSync(join(cli.folder, 'links/turnpike.yaml'), join(cli.folder, 'turnpike.yaml'))
    const gateway = await cli.serve()
    const single = await costOf(gateway)
    cli.write('one/mine.yaml', priced('5'))
    await until(async () => (await costOf(gateway)) > 4 * single)
    point('two')
    await until(async () => (await costOf(gateway)) < 4 * single)
    cli.write('two/mine.yaml', priced('7'))
    await until(async () => (await costOf(gateway)) > 6 * single)
  })

  test('a file in a linked folder is taken into use when that link moves, and then where it leads', async () => {
    const point = (release: string) => {
      symlinkSync(join('releases', release), join(cli.folder, 'next'))
      renameSync(join(cli.folder, 'next'), join(cli.folder, 'current'))
    }
    for (const folder of ['releases/one', 'releases/two']) mkdirSync(join(cli.folder, folder), { recursive: true })
    cli.write('releases/one/turnpike.yaml', priced('1'))
    cli.write('releases/two/turnpike.yaml', priced('3'))
    point('one')
    const gateway = await cli.serve(['--config', 'current/turnpike.yaml'])
    const single = await costOf(gateway)
    point('two')
    await until(async () => (await costOf(gateway)) > 2 * single)
    cli.write('releases/two/turnpike.yaml', priced('5'))
    await until(async () => (await costOf(gateway)) > 4 * single)
  })

  test('SIGHUP takes the file into use, also one that did not exist at the start', async () => {
    const gateway = await cli.serve()
    const single = await costOf(gateway)
    cli.write('turnpike.yaml', priced('5'))
    gateway.signal('SIGHUP')
    await until(() => gateway.output().includes('the configuration was reloaded'))
    expect(await costOf(gateway)).toBeCloseTo(5 * single, 8)

    const settings = `${priced('5')}limits: { attemptsMax: 4 }\nlog: { level: warn }\n`
    cli.write('turnpike.yaml', settings)
    gateway.signal('SIGHUP')
    const said = 'reloaded, but for settings that need a restart: limits.attemptsMax, log.level"'
    await until(() => gateway.output().includes(said))

    cli.write('turnpike.yaml', 'limits: { attemptsMax: none }')
    gateway.signal('SIGHUP')
    await until(() => gateway.output().includes('the old one stays in use'))
    expect(await costOf(gateway)).toBeCloseTo(5 * single, 8)
  })

  test('settings that came from a pipe stay in use after SIGHUP, because a pipe can be read only once', async () => {
    const pipe = join(cli.folder, 'pipe')
    expect(Bun.spawnSync(['mkfifo', pipe]).exitCode).toBe(0)
    cli.write('settings', priced('5'))
    const [gateway] = await Promise.all([
      cli.serve(['--config', pipe]),
      Bun.spawn(['cp', join(cli.folder, 'settings'), pipe]).exited,
    ])
    const cost = await costOf(gateway)
    gateway.signal('SIGHUP')
    await until(() => gateway.output().includes('is not a regular file'))
    expect(gateway.output()).toContain('the old one stays in use')
    expect(await costOf(gateway)).toBe(cost)
  })

  test('a file that did not exist at the start is taken into use by itself, and its removal changes nothing', async () => {
    const gateway = await cli.serve()
    const single = await costOf(gateway)
    cli.write('turnpike.yaml', priced('3'))
    await until(async () => (await costOf(gateway)) > 2 * single)
    rmSync(join(cli.folder, 'turnpike.yaml'))
    await until(() => gateway.output().includes('there is no file turnpike.yaml'))
    expect(await costOf(gateway)).toBeCloseTo(3 * single, 8)
  })
})

// A reload leaves the gateway running, whatever becomes of the file: one is enough for all of these.
describe('a turnpike.yaml that is changed again and again', () => {
  let own: Cli
  let gateway: Served
  let single: number
  let markup = 1
  beforeAll(async () => {
    own = makeCli()
    gateway = await own.serve()
    single = await costOf(gateway)
    expect(await reloads(gateway)).toEqual({ accepted: 0, rejected: 0 })
  })
  afterAll(() => own.close())

  function reload(text: string): void {
    own.write('turnpike.yaml', text)
    gateway.signal('SIGHUP')
  }

  /** Expects that a good file is taken into use after the last one, with a markup that none had before. */
  async function mend(): Promise<void> {
    const { accepted } = await reloads(gateway)
    markup += 1
    reload(priced(String(markup)))
    // The file is watched too: one that was accepted before may be read again just now, and count as accepted again.
    await until(async () => Math.abs((await costOf(gateway)) - markup * single) < 1e-8)
    expect((await reloads(gateway)).accepted).toBeGreaterThan(accepted)
  }

  test('a reload that leaves no model to serve is logged as an error', async () => {
    reload('models: [{ id: "*", hidden: true }]\n')
    const said = 'the configuration was reloaded: there is no model to serve: no configured channel offers a model'
    await until(() => gateway.output().includes(said))
    const line = gateway
      .output()
      .split('\n')
      .find((each) => each.includes(said))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 50 })
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(503)
    expect(gateway.output()).not.toContain('the configuration was reloaded"')
    await mend()
    await until(() => gateway.output().includes('the configuration was reloaded"'))
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200)
  })

  test.each([
    ['nothing in it, as before it is written', ''],
    ['a syntax error', 'models: ['],
    ['an unknown setting', 'limit: {}'],
    ['a price that is not a number', 'models: [{ id: gpt-4o-mini, prices: { inputPerMillion: .nan } }]'],
    ['a negative price', 'models: [{ id: gpt-4o-mini, prices: { inputPerMillion: "-1" } }]'],
    ['a model without a price or a channel', 'models: [{ id: a-model-of-nobody }]'],
    ['a hundred megabytes', `# ${'x'.repeat(100 * 1024 * 1024)}`],
  ])('a file with %s is counted as rejected, and the old one stays in use', async (_name, text) => {
    const before = await costOf(gateway)
    const { rejected } = await reloads(gateway)
    reload(text)
    await until(async () => (await reloads(gateway)).rejected > rejected)
    expect(await costOf(gateway)).toBe(before)
    await mend()
  })
})

/** As an operator's metrics have it. */
async function reloads(gateway: Served) {
  const [, url] = /operator's API is at (\S+)\/admin/.exec(gateway.output()) ?? []
  const [, key] = /^ {2}(adm-\S+)$/m.exec(gateway.output()) ?? []
  const text = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${key}` } })).text()
  const found = readExposition(text)
  const count = (outcome: string) => found.value('turnpike_config_reloads_total', { outcome }) ?? NaN
  return { accepted: count('accepted'), rejected: count('rejected') }
}
