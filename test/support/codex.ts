import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestGateway } from './gateway.ts'
import { findInstalled } from './installed-tool.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** The release that was tested by hand; a newer one may require more. */
const version = '0.166.0'
const turnMsMax = 60_000

/** OpenAI's command-line tool, if it can be installed. */
export function findCodex(): string | undefined {
  return findInstalled({
    name: 'codex',
    package: '@openai/codex',
    version,
    found(folder) {
      const platform = join(folder, 'node_modules/@openai', `codex-${process.platform}-${process.arch}`)
      const script = join(folder, 'node_modules/@openai/codex/bin/codex.js')
      return existsSync(platform) && existsSync(script) ? script : undefined
    },
  })
}

export type Session = {
  turn(prompt: string, flags?: readonly string[]): Promise<Turn>
  /** Continues from the last turn. */
  goOn(prompt: string): Promise<Turn>
}

/** What the tool printed, in its own JSON. */
export type Turn = {
  readonly code: number | null
  readonly text: string
  readonly errors: string
  readonly inputTokens: number
}

/** Runs with its own home and working folder, so that the developer's settings neither apply nor change. */
export function openSession(script: string, gateway: TestGateway, model: string, key = gateway.key): Session {
  const root = temporaryFolder('codex-home')
  const folder = join(root, 'work')
  mkdirSync(folder)
  writeFileSync(join(root, 'config.toml'), settingsFor(gateway, model))
  const env = { PATH: process.env['PATH'] ?? '', HOME: root, CODEX_HOME: root, TMPDIR: root, TURNPIKE_KEY: key }
  const ask = (flags: readonly string[]) => run(script, ['exec', ...flags], folder, env)
  const usual = ['--json', '--skip-git-repo-check']
  return {
    turn: (prompt, flags = []) => ask([...usual, ...flags, prompt]),
    goOn: (prompt) => ask(['resume', '--last', ...usual, prompt]),
  }
}

// Telemetry and updates go to the vendor's own hosts, which these tests leave alone.
const settingsFor = ({ url }: TestGateway, model: string) => `
model = "${model}"
model_provider = "turnpike"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.turnpike]
name = "Turnpike"
base_url = "${url}/v1"
env_key = "TURNPIKE_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`

function run(script: string, flags: readonly string[], cwd: string, env: Record<string, string>): Promise<Turn> {
  const child = spawn('node', [script, ...flags], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: turnMsMax,
    killSignal: 'SIGKILL',
  })
  let printed = ''
  child.stdout.on('data', (bytes: Buffer) => (printed += bytes.toString()))
  child.stderr.resume()
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, ...readTurn(printed) }))
  })
}

type Line = {
  readonly type: string
  readonly message?: string
  readonly error?: { readonly message: string }
  readonly item?: { readonly type: string; readonly text?: string }
  readonly usage?: { readonly input_tokens: number }
}

function readTurn(printed: string): Omit<Turn, 'code'> {
  const lines = printed.split('\n').filter((line) => line.startsWith('{'))
  const events = lines.map((line) => JSON.parse(line) as Line)
  const said = events.flatMap(({ item }) => (item?.type === 'agent_message' ? [item.text ?? ''] : []))
  const errors = events.flatMap(({ type, message, error }) =>
    type === 'error' || type === 'turn.failed' ? [message ?? error?.message ?? ''] : [],
  )
  const inputTokens = events.findLast(({ usage }) => usage !== undefined)?.usage?.input_tokens ?? 0
  return { text: said.join('\n'), errors: errors.join('\n'), inputTokens }
}
