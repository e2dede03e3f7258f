import { spawn } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestGateway } from './gateway.ts'
import { findInstalled } from './installed-tool.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** The release that was observed; a newer one may require more. */
const version = '2.1.325'
const turnMsMax = 60_000

const names = ['', '-musl'].map((libc) => `claude-code-${process.platform}-${process.arch}${libc}`)

/** The vendor's command-line tool, if it can be installed. */
export function findClaudeCode(): string | undefined {
  return findInstalled({
    name: 'claude-code',
    package: '@anthropic-ai/claude-code',
    version,
    found: (folder) =>
      names.map((name) => join(folder, 'node_modules/@anthropic-ai', name, 'claude')).find((path) => existsSync(path)),
  })
}

export type Session = {
  /** Its working folder. Everything it remembers is in the folder above. */
  readonly folder: string
  turn(prompt: string, options?: TurnOptions): Promise<Turn>
}

type TurnOptions = { readonly flags?: readonly string[]; readonly env?: Readonly<Record<string, string>> }

/** What the tool printed, in its own JSON. */
export type Turn = {
  readonly code: number | null
  readonly result: string
  readonly isError: boolean
  readonly turns: number
  /** The models that it was charged for, by its own account. */
  readonly models: readonly string[]
  readonly ms: number
}

/** Runs with its own home and working folder, so that the developer's settings neither apply nor change. */
export function openSession(binary: string, gateway: TestGateway, model: string, token = gateway.key): Session {
  const root = temporaryFolder('claude-code-home')
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
        // Telemetry and updates go to the vendor's own hosts, which these tests leave alone.
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        ...env,
      }
      return run(binary, ['-p', prompt, '--model', model, '--output-format', 'json', ...flags], folder, settings)
    },
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
