import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { readConfigFile } from '../../src/config/file.ts'
import { newId } from '../../src/base/ids.ts'
import { nano, parseDollars, type Nano } from '../../src/base/money.ts'
import { hintOf, makeSecretKeys } from '../../src/keys/secret-keys.ts'
import { readCatalogue, readChannels } from '../../src/plan.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { simulatedModels } from '../../src/simulated.ts'
import { createAccount, creditSourceIn } from '../../src/store/accounts.ts'
import { insertKey } from '../../src/store/keys.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { compiled } from '../support/compiled.ts'
import { freePort } from '../support/free-port.ts'
import { createSparseReserve } from '../support/journal-room.ts'
import { runInResident } from '../support/resident.ts'

const program = join(import.meta.dir, '../../bin/turnpike')

export type Engine = 'sqlite' | 'postgres'

/** A gateway that is killed and started again on the same folder and port. */
export type Node = {
  readonly name: string
  readonly url: string
  /** Starts it, armed with a crash point if one is given. Resolves when it serves or has ended. */
  start(crash?: string): Promise<void>
  readonly running: boolean
  kill(): void
  terminate(): void
  /** The exit code, or the signal that ended it. */
  ended(): Promise<number | string>
  /** The end of what it printed. */
  output(): string
}

/** Gateways and an operator's command line, each in processes of their own, and the vendors in this one. */
export type World = {
  readonly nodes: readonly Node[]
  readonly billUrl: string
  /** Opens the database of all nodes directly. The caller closes it. */
  openStore(): Promise<Store>
  /** Writes an account directly to the database, while nodes run or before: the command line is not under test here. */
  fund(name: string, credit: string): Promise<Funded>
  /** Runs the command line, one command at a time; returns its exit code and what it printed. */
  command(args: readonly string[]): Promise<{ code: number; out: string; err: string }>
  json<T>(args: readonly string[]): Promise<T>
  close(): Promise<void>
}

/** An account with its own key. */
export type Funded = { readonly id: string; readonly name: string; readonly key: string; readonly credit: Nano }

/** What the model sells for, in nanos per token. The markup keeps cost and charge apart. */
export const perToken = { input: 1_500n, output: 15_000n } as const
export const model = 'chaos'

function settings(vendorUrl: string, mode: string): string {
  return `sandbox: false
channels:
  - { id: first, vendor: openai, baseUrl: "${vendorUrl}/openai/v1", keys: ["one"], priority: 0 }
  - { id: second, vendor: compatible, baseUrl: "${vendorUrl}/compatible/v1", keys: ["two"], priority: 1 }
models:
  - id: ${model}
    capability: chat
    channels: [{ channel: first }, { channel: second }]
    outputTokensMax: 1000
    prices: { inputPerMillion: "1", outputPerMillion: "10", markup: "1.5" }
timeouts: { drainSeconds: 1 }
billing: { mode: ${mode} }
log: { level: warn }
`
}

const secret = 'chaos-secret-chaos-secret-chaos-secret'
const mode = 'real'
const servesMsMax = 60_000
const outputCharactersMax = 8_000

export async function makeWorld(options: {
  engine: Engine
  nodes: number
  databaseUrl?: string
  mode?: 'leased' | 'strict'
  /** Replaces the settings with the one chat model. */
  settings?: (vendorUrl: string) => string
  /** The program of each node, if it is not this version of the gateway. */
  programs?: readonly (string | undefined)[]
}): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-chaos-'))
  const vendors = startSandbox({
    port: 0,
    models: () => simulatedModels(readCatalogue(file, true, systemClock), channels),
  })
  // Its usual name: a start in this folder finds it by itself.
  const config = join(folder, 'turnpike.yaml')
  const written = options.settings?.(vendors.url) ?? settings(vendors.url, options.mode ?? 'leased')
  const file = readConfigFile(config, written, {})
  const channels = readChannels(file, {})
  writeFileSync(config, written)
  const children = new Set<Bun.Subprocess>()
  const base = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    ...compiled,
    ADMIN_PORT: '0',
    TURNPIKE_SECRET: secret,
    ...(options.databaseUrl !== undefined && { DATABASE_URL: options.databaseUrl }),
  }

  function serve(variables: Record<string, string>, run = program) {
    const child = Bun.spawn([run, 'serve'], {
      cwd: folder,
      env: { ...base, ...variables },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    children.add(child)
    void child.exited.then(() => children.delete(child))
    return child
  }

  async function makeNode(index: number): Promise<Node> {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    let child: ReturnType<typeof serve> | undefined
    let text = ''
    const keep = (piece: string) => (text = (text + piece).slice(-outputCharactersMax))
    return {
      name: `node ${index}`,
      url,
      get running() {
        return child !== undefined && child.exitCode === null && child.signalCode === null
      },
      async start(crash) {
        const dataFolder = join(folder, `data-${index}`)
        createSparseReserve(dataFolder)
        const variables = {
          PORT: String(port),
          TURNPIKE_DATA: dataFolder,
          ...(crash !== undefined && { TURNPIKE_CRASH: crash }),
        }
        const started = serve(variables, options.programs?.[index])
        child = started
        void collect(started.stdout, keep)
        void collect(started.stderr, keep)
        await untilServing(url, started)
      },
      kill: () => child?.kill('SIGKILL'),
      terminate: () => child?.kill('SIGTERM'),
      async ended() {
        await child?.exited
        return child?.signalCode ?? child?.exitCode ?? 'never started'
      },
      output: () => text,
    }
  }

  const nodes = await Promise.all(Array.from({ length: options.nodes }, (_, index) => makeNode(index)))

  const { databaseUrl } = options
  const open = () =>
    openStore(databaseUrl === undefined ? { file: join(folder, 'data-0', 'turnpike.sqlite') } : { url: databaseUrl })

  async function command(args: readonly string[]) {
    const variables = { ...base, TURNPIKE_DATA: join(folder, 'data-0') }
    const ended = await runInResident({ args: [...args, '--config', config], variables, folder })
    if (ended === undefined) throw new Error(`two commands at once: ${args.join(' ')}`)
    return ended
  }

  return {
    nodes,
    billUrl: `${vendors.url}/__bill`,
    openStore: open,
    async fund(name, credit) {
      const store = await open()
      try {
        return await makeCustomer(store, name, nano(parseDollars(credit) ?? 0n))
      } finally {
        await store.close()
      }
    },
    command,
    async json<T>(args: readonly string[]) {
      const { code, out, err } = await command([...args, '--json'])
      if (code !== 0) throw new Error(`turnpike ${args.join(' ')} gave ${code}: ${err}${out}`)
      return JSON.parse(out) as T
    },
    async close() {
      const left = [...children]
      for (const child of left) child.kill('SIGKILL')
      await Promise.all(left.map((child) => child.exited))
      await vendors.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function makeCustomer(store: Store, name: string, credit: Nano): Promise<Funded> {
  const secretKeys = makeSecretKeys(Buffer.from(secret))
  const [id, key, actor] = [newId('acc'), secretKeys.make('sk'), 'test']
  await createAccount(store, { id, name, mode, actor, credit: { amount: credit, source: creditSourceIn(mode) } })
  const digest = secretKeys.digest(mode, key)
  await insertKey(store, { id: newId('key'), accountId: id, digest, hint: hintOf(key), actor })
  return { id, name, key, credit }
}

/** Readiness, not only liveness: callers want the journal to be replayed. */
async function untilServing(url: string, child: Bun.Subprocess): Promise<void> {
  const giveUpAt = performance.now() + servesMsMax
  while (child.exitCode === null && child.signalCode === null) {
    const status = await fetch(`${url}/readyz`, { keepalive: false }).then(
      async (response) => {
        await response.arrayBuffer()
        return response.status
      },
      () => 0,
    )
    if (status === 200) return
    if (performance.now() > giveUpAt) throw new Error(`${url} does not answer`)
    // More often would take processor time from the start that is waited for.
    await pause(25)
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }))
}
