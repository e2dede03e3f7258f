import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFile } from '../../src/config/environment.ts'
import { compiled } from './compiled.ts'
import { until } from './gateway.ts'
import { createSparseReserve } from './journal-room.ts'
import { runInResident, type Ended } from './resident.ts'
import { writeFreshSqlite } from './sqlite.ts'
import { temporaryFolder } from './temporary-folder.ts'

const checkout = join(import.meta.dir, '../..')

type Variables = Readonly<Record<string, string>>

/** A gateway in a separate process, as an operator runs it. */
export type Served = {
  readonly url: string
  /** The key it printed, if it made one. */
  readonly key: string | undefined
  /** Everything printed so far. */
  readonly output: () => string
  /** Closes the pipe that its log is read from. */
  readonly stopReading: () => Promise<void>
  readonly pid: number
  readonly signal: (name: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => void
  /** The exit code, once it has ended. */
  readonly exited: Promise<number>
  /** A chat request; by default with the key it printed. */
  chat(body?: Record<string, unknown>, key?: string): Promise<Response>
}

export type Cli = {
  readonly folder: string
  readonly write: (name: string, text: string) => void
  /**
   * A command to its end, in a process that stays (`resident.ts`). A start is one only where it is refused: what it is
   * refused for is found by the same program, which then ends by `process.exit`.
   */
  run(args: readonly string[], variables?: Variables): Promise<Ended>
  /** As `run`, always in a process of its own, which also does what `bin/turnpike` does before the program starts. */
  runAlone(args: readonly string[], variables?: Variables): Promise<Ended>
  /** The JSON of a command that must succeed. */
  json<T>(args: readonly string[], variables?: Variables): Promise<T>
  serve(args?: readonly string[], variables?: Variables): Promise<Served>
  /** Starts a command without waiting for it. */
  start(args: readonly string[], variables: Variables): Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  close(): Promise<void>
}

/**
 * The real command line in an empty folder, with only the test's environment. `installed` is the program's folder, and
 * `data` the gateway's, for commands beside one that the test has started by itself.
 */
export function makeCli({ installed = checkout, data }: { installed?: string; data?: string } = {}): Cli {
  const folder = temporaryFolder('cli')
  const dataFolder = data ?? join(folder, 'data')
  const running: Bun.Subprocess[] = []

  const allVariables = (variables: Variables) => {
    const base = { PATH: process.env['PATH'] ?? '', HOME: folder, PORT: '0', ADMIN_PORT: '0', ...compiled }
    return { ...base, TURNPIKE_DATA: dataFolder, ...variables }
  }

  const start = (args: readonly string[], variables: Variables) => {
    const child = Bun.spawn([join(installed, 'bin/turnpike'), ...args], {
      cwd: folder,
      env: allVariables(variables),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    running.push(child)
    return child
  }

  /** Spares a start in a new folder the work that is the same in each. Another program does all of it by itself. */
  async function furnish({ TURNPIKE_DATA: used = dataFolder, DATABASE_URL: url }: Variables): Promise<void> {
    const file = databaseFile({ dataFolder: used })
    createSparseReserve(used)
    if (installed === checkout && url === undefined && !existsSync(file)) await writeFreshSqlite(file)
  }

  async function run(args: readonly string[], variables: Variables = {}): Promise<Ended> {
    if (installed !== checkout) return runAlone(args, variables)
    const ended = await runInResident({ args, variables: allVariables(variables), folder })
    return ended ?? runAlone(args, variables)
  }

  async function runAlone(args: readonly string[], variables: Variables = {}): Promise<Ended> {
    const child = start(args, variables)
    const [code, out, err] = await Promise.all([child.exited, textOf(child.stdout), textOf(child.stderr)])
    return { code, out, err }
  }

  return {
    folder,
    write: (name, text) => writeFileSync(join(folder, name), text),
    run,
    runAlone,
    start,
    async json<T>(args: readonly string[], variables: Variables = {}) {
      const { code, out, err } = await run([...args, '--json'], variables)
      if (code !== 0) throw new Error(`turnpike ${args.join(' ')} failed: ${err}`)
      return JSON.parse(out) as T
    },
    async serve(args = [], variables = {}) {
      await furnish(variables)
      const child = start(['serve', ...args], variables)
      let text = ''
      const stopReading = collect(child.stdout, (piece) => (text += piece))
      collect(child.stderr, (piece) => (text += piece))
      await until(
        () => text.includes('to see it stream') || text.includes('no model to try') || child.exitCode !== null,
      )
      const url = /at (http:\S+)\/v1/.exec(text)?.[1]
      if (url === undefined) throw new Error(`the gateway did not start: ${text}`)
      const key = /^ {2}(sk-\S+)$/m.exec(text)?.[1]
      return {
        url,
        key,
        output: () => text,
        stopReading,
        pid: child.pid,
        signal: (name) => child.kill(name),
        exited: child.exited,
        chat: (body = {}, used = key) => ask(url, used, body),
      }
    },
    async close() {
      for (const child of running) child.kill('SIGKILL')
      await Promise.all(running.map((child) => child.exited))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function ask(url: string, key: string | undefined, body: Record<string, unknown>): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello!' }], ...body }),
  })
}

function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  return new Response(stream).text()
}

/** Reads the stream until the returned function is called. */
function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): () => Promise<void> {
  const decoder = new TextDecoder()
  const reader = stream.getReader()
  const read = async () => {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      take(decoder.decode(piece.value, { stream: true }))
    }
  }
  void read()
  return () => reader.cancel()
}
