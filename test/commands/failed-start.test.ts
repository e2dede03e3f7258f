import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/gateway.ts'
import { openNow, watchTimers, type WatchedTimers } from '../support/leftovers.ts'
import { chat, openSite, type Asked, type Site } from '../support/site.ts'

// A start takes a fraction of a second; machines that test are busy.
setDefaultTimeout(120_000)

type Struck = {
  readonly asked?: Asked
  /** What the operator is told. */
  readonly says: string
  mend(): Promise<void> | void
  /** How the start after the repair is asked for, where that differs. */
  readonly askedAgain?: Asked
}

/** A port that another program listens on, and how a start is asked to use it. */
function taken(setting: string, ask: (port: number) => Asked): () => Promise<Struck> {
  return async () => {
    const port = await freePort()
    const other = Bun.serve({ port, hostname: '127.0.0.1', fetch: () => new Response('') })
    const says = `port ${port} of 127.0.0.1 is in use: give another as ${setting}, or 0 for a free one`
    return { asked: ask(port), says, mend: () => other.stop(true) }
  }
}

/** A table that the start does not find, since it was renamed. */
async function without(site: Site, table: string): Promise<Struck> {
  await site.look(() => Promise.resolve())
  await site.tell(`alter table ${table} rename to ${table}_away`)
  return {
    says: site.engine === 'sqlite' ? `no such table: ${table}` : `relation "${table}" does not exist`,
    mend: () => site.tell(`alter table ${table}_away rename to ${table}`),
  }
}

const refusal = {
  sqlite: {
    make: [`create trigger closed before insert on account begin select raise(abort, 'no accounts today'); end`],
    drop: ['drop trigger closed'],
  },
  postgres: {
    make: [
      `create function closed() returns trigger language plpgsql as $$ begin raise 'no accounts today'; end $$`,
      'create trigger closed before insert on account for each row execute function closed()',
    ],
    drop: ['drop trigger closed on account', 'drop function closed'],
  },
}

type Faults = Readonly<Record<string, (site: Site) => Struck | Promise<Struck>>>

// Both in the order in which a start comes to them.
const beforeTheDatabase: Faults = {
  'the public port is taken': taken('PORT', (port) => ({ variables: { PORT: String(port) } })),

  "the operator's port is taken": taken('ADMIN_PORT', (port) => ({ variables: { ADMIN_PORT: String(port) } })),

  async 'another gateway has the folder'({ folder }) {
    const script = join(import.meta.dir, '../support/hold-lock.ts')
    const other = Bun.spawn([process.execPath, script, folder], { stdout: 'pipe', stderr: 'inherit' })
    await other.stdout.getReader().read()
    return {
      says: 'Another gateway is running on',
      async mend() {
        other.kill('SIGKILL')
        await other.exited
      },
    }
  },

  'the lock of the folder cannot be opened'({ folder }) {
    const file = join(folder, 'gateway.lock')
    rmSync(file, { force: true })
    mkdirSync(file)
    return { says: `${file} cannot be locked: unable to open database file`, mend: () => rmdirSync(file) }
  },

  'the name of the node cannot be read'({ folder }) {
    mkdirSync(join(folder, 'node'))
    return { says: 'EISDIR', mend: () => rmdirSync(join(folder, 'node')) }
  },

  'the file is not a database'({ folder }) {
    const file = join(folder, 'turnpike.sqlite')
    writeFileSync(file, 'not a database, whatever its name says'.repeat(100))
    return { says: `the database ${file} cannot be opened: file is not a database`, mend: () => rmSync(file) }
  },
}

const migrates = 'a migration fails'

const withTheDatabase: Faults = {
  async [migrates](site) {
    await site.tell('create table account (id text)')
    const why = site.engine === 'sqlite' ? 'SQLiteError: table "account"' : 'error: relation "account"'
    const place = site.engine === 'sqlite' ? join(site.folder, 'turnpike.sqlite') : 'of DATABASE_URL'
    const says = `the database ${place} cannot be opened: it could not be migrated: ${why} already exists`
    return { says, mend: () => site.tell('drop table account') }
  },

  // On PostgreSQL holds are left alone at a start, since others may have them, but it is asked whether it can be
  // written.
  'the first table that a start uses is missing': (site) =>
    without(site, site.engine === 'sqlite' ? 'hold' : 'setting'),

  'the catalogue is invalid': () => ({
    asked: { yaml: 'models: [{ id: gpt-4o-mini, prices: { markup: three } }]' },
    says: 'turnpike.yaml:1:',
    mend() {},
    askedAgain: {},
  }),

  "the simulators' port is taken": taken('SANDBOX_PORT', (port) => ({ variables: { SANDBOX_PORT: String(port) } })),

  async 'the journal is damaged'(site) {
    const last = await site.start()
    expect(await chat(last)).toBe(200)
    await last.close()
    const segment = join(site.folder, 'journal/segment-a')
    const bytes = readFileSync(segment)
    writeFileSync(segment, Buffer.concat([Buffer.alloc(8), bytes.subarray(8)]))
    return { says: 'the journal is damaged at byte 0 of segment-a', mend: () => writeFileSync(segment, bytes) }
  },

  'the journal cannot be read'({ folder }) {
    mkdirSync(join(folder, 'journal/segment-a'), { recursive: true })
    return { says: 'EISDIR', mend: () => rmdirSync(join(folder, 'journal/segment-a')) }
  },

  'the table of nodes is missing': (site) => without(site, 'node'),

  'idempotent requests of the last process cannot be closed': (site) => without(site, 'idempotency'),

  'the check of the guarded fetch fails': () => ({
    asked: { provenSafe: refuted },
    says: 'the guard does not work here',
    mend() {},
    askedAgain: {},
  }),

  "the tool server's port is taken": taken('mcp.port in turnpike.yaml', (port) => ({ yaml: `mcp: { port: ${port} }` })),

  async 'the first account cannot be made'(site) {
    await site.look(() => Promise.resolve())
    const { make, drop } = refusal[site.engine]
    for (const statement of make) await site.tell(statement)
    return {
      asked: { yaml: 'mcp: { port: 0 }' },
      says: 'no accounts today',
      async mend() {
        for (const statement of drop) await site.tell(statement)
      },
    }
  },
}

/** As the command passes it: handled from the beginning, since a start that fails earlier never awaits it. */
function refuted(): Promise<void> {
  const refuted = Promise.reject(new Error('the guard does not work here'))
  refuted.catch(() => {})
  return refuted
}

const unheard: unknown[] = []
const hear = (thrown: unknown) => void unheard.push(thrown)
beforeAll(() => void process.on('unhandledRejection', hear))
afterAll(() => void process.off('unhandledRejection', hear))

const faults = { sqlite: { ...beforeTheDatabase, ...withTheDatabase }, postgres: withTheDatabase }

describe.each(['sqlite', 'postgres'] as const)('a start on %s that fails', (engine) => {
  let site: Site
  let mend: Struck['mend']
  let timers: WatchedTimers | undefined
  beforeEach(() => {
    mend = () => {}
  })
  afterEach(async () => {
    timers?.stop()
    await mend()
    await site.remove()
  })

  /** Expects that nothing is open but what was open then. */
  async function nothingBut(then: ReturnType<typeof openNow>): Promise<void> {
    expect(openNow(site.folder)).toMatchObject({ files: [], ports: then.ports })
    // A thread that was told to end takes a moment, and so does a connection.
    await until(async () => openNow(site.folder).threads <= then.threads && (await site.connections()) === 0)
  }

  test.each(Object.entries(faults[engine]))(
    '%s: nothing stays open, and the next start works',
    async (name, strike) => {
      site = await openSite(engine, name === migrates ? 'empty' : 'tables')
      const struck = await strike(site)
      mend = () => {
        mend = () => {}
        return struck.mend()
      }
      const { asked = {}, says, askedAgain = asked } = struck
      const before = openNow(site.folder)
      expect(before.files).toEqual([])

      timers = watchTimers()
      const failure = await timers
        .watch(() => site.start(asked))
        .then(
          () => 'it started',
          (thrown: unknown) => String(thrown),
        )
      expect(failure).toContain(says)
      await nothingBut(before)
      await until(() => timers?.pending() === 0)
      timers.stop()

      await mend()
      const mended = openNow(site.folder)
      const gateway = await site.start(askedAgain)
      expect(await chat(gateway)).toBe(200)
      await gateway.close()
      await nothingBut(mended)
      await site.checkBooks()
      expect(unheard).toEqual([])
    },
  )
})

const source = (path: string) => JSON.stringify(join(import.meta.dir, '../../src', path))

test('a process whose start failed ends by itself', async () => {
  const site = await openSite('sqlite')
  const struck = await withTheDatabase['the first account cannot be made']?.(site)
  const program = `
    import { silentLog } from ${source('base/log.ts')}
    import { readEnvironment } from ${source('config/environment.ts')}
    import { readConfigFile } from ${source('config/file.ts')}
    import { openGateway } from ${source('gateway.ts')}
    const variables = { TURNPIKE_DATA: ${JSON.stringify(site.folder)}, PORT: '0', ADMIN_PORT: '0' }
    const file = readConfigFile('x.yaml', 'mcp: { port: 0 }', {})
    const starting = openGateway({ environment: readEnvironment(variables), file, variables: {}, log: silentLog })
    process.stdout.write(await starting.then(() => 'it started', String))`
  const child = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe', stderr: 'inherit' })
  const giveUp = setTimeout(() => child.kill('SIGKILL'), 20_000)
  expect(await new Response(child.stdout).text()).toContain(struck?.says ?? 'the fault')
  expect(await child.exited).toBe(0)
  clearTimeout(giveUp)
  await site.remove()
})
