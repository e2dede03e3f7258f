import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestGateway } from './gateway.ts'

/** The release whose behaviour the project's notes describe; a newer one may ask for more. */
const version = '2.1.325'
const installMsMax = 180_000
const turnMsMax = 60_000

/**
 * Where the vendor's command-line tool is, installed into a folder of the machine's own on the first call: it has 350 MB,
 * too much for everybody who checks the project out. Undefined, with the reason printed, where it cannot be had.
 */
export function findClaudeCode(): string | undefined {
  const cache = join(tmpdir(), `turnpike-claude-code-${version}`)
  const names = ['', '-musl'].map((libc) => `claude-code-${process.platform}-${process.arch}${libc}`)
  const found = (folder: string) =>
    names.map((name) => join(folder, 'node_modules/@anthropic-ai', name, 'claude')).find((path) => existsSync(path))
  const known = found(cache)
  if (known !== undefined) return known
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-claude-code-install-'))
  const wanted = `@anthropic-ai/claude-code@${version}`
  // Its script would only copy the binary that stands beside it.
  const flags = ['--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { status, stderr } = spawnSync('npm', ['install', ...flags, wanted], {
    cwd: folder,
    timeout: installMsMax,
    encoding: 'utf8',
  })
  if (status !== 0 || found(folder) === undefined) {
    rmSync(folder, { recursive: true, force: true })
    process.stderr.write(`claude-code is not tested: ${wanted} could not be installed. ${stderr.slice(0, 300)}\n`)
    return undefined
  }
  // Another run may have been faster; then its folder stands, and ours is not needed.
  if (found(cache) === undefined) renameSync(folder, cache)
  else rmSync(folder, { recursive: true, force: true })
  return found(cache)
}

export type Session = {
  /** Where it works; everything it remembers is beside it. */
  readonly folder: string
  turn(prompt: string, options?: TurnOptions): Promise<Turn>
  close(): void
}

type TurnOptions = { readonly flags?: readonly string[]; readonly env?: Readonly<Record<string, string>> }

/** What it printed, in its own JSON. */
export type Turn = {
  readonly code: number | null
  readonly result: string
  readonly isError: boolean
  readonly turns: number
  /** The models that it was charged for, in its own reckoning. */
  readonly models: readonly string[]
  readonly ms: number
}

/** A home and a folder of its own, so that no setting of whoever runs the tests counts and none is changed. */
export function openSession(binary: string, gateway: TestGateway, model: string, token = gateway.key): Session {
  const root = mkdtempSync(join(tmpdir(), 'turnpike-claude-code-home-'))
  const folder = join(root, 'work')
  mkdirSync(folder)
  return {
    folder,
    turn(prompt, { flags = [], env = {} } = {}) {
      const settings = {
        PATH: process.env['PATH'] ?? '',
        HOME: root,
        TMPDIR: root,
        ANTHROPIC_BASE_URL: gateway.url,
        ANTHROPIC_AUTH_TOKEN: token,
        // Reports and updates go to the vendor's own hosts, which are none of our business.
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        ...env,
      }
      return run(binary, ['-p', prompt, '--model', model, '--output-format', 'json', ...flags], folder, settings)
    },
    close: () => rmSync(root, { recursive: true, force: true }),
  }
}

function run(binary: string, flags: readonly string[], cwd: string, env: Record<string, string>): Promise<Turn> {
  const startedAt = performance.now()
  const child = spawn(binary, flags, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: turnMsMax,
    killSignal: 'SIGKILL',
  })
  let printed = ''
  let complained = ''
  child.stdout.on('data', (bytes: Buffer) => (printed += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (complained += bytes.toString()))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      const ms = performance.now() - startedAt
      try {
        resolve({ code, ms, ...readResult(printed) })
      } catch {
        reject(new Error(`claude-code ended with ${code} after ${Math.round(ms)} ms: ${printed}${complained}`))
      }
    })
  })
}

type Printed = { result?: string; is_error: boolean; num_turns: number; modelUsage?: Record<string, unknown> }

function readResult(printed: string): Omit<Turn, 'code' | 'ms'> {
  const { result = '', is_error: isError, num_turns: turns, modelUsage = {} } = JSON.parse(printed) as Printed
  return { result, isError, turns, models: Object.keys(modelUsage) }
}
