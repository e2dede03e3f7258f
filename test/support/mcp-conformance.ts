import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createServer, request as forward, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestGateway } from './gateway.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** The newest release, which knows both eras of the protocol. */
const version = '0.2.0-alpha.12'
const installMsMax = 180_000
const runMsMax = 60_000

/**
 * The path of the protocol's own conformance suite, which the first call installs into a temporary folder of the
 * machine. Prints the reason and gives undefined if it cannot be installed.
 */
export function findConformance(): string | undefined {
  const cache = join(tmpdir(), `turnpike-mcp-conformance-${version}`)
  const script = 'node_modules/@modelcontextprotocol/conformance/dist/index.js'
  if (existsSync(join(cache, script))) return join(cache, script)
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-mcp-conformance-install-'))
  const wanted = `@modelcontextprotocol/conformance@${version}`
  const flags = ['--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { status, stderr } = spawnSync('npm', ['install', ...flags, wanted], {
    cwd: folder,
    timeout: installMsMax,
    encoding: 'utf8',
  })
  if (status !== 0 || !existsSync(join(folder, script))) {
    rmSync(folder, { recursive: true, force: true })
    process.stderr.write(`conformance is not tested: ${wanted} could not be installed. ${stderr.slice(0, 300)}\n`)
    return undefined
  }
  // If another run was faster, its folder is used and this one is removed.
  if (existsSync(cache)) rmSync(folder, { recursive: true, force: true })
  else renameSync(folder, cache)
  return join(cache, script)
}

export type Check = { readonly id: string; readonly status: string; readonly errorMessage?: string }

/** Gives the result of each check of a scenario. Throws what the suite printed if it has left none. */
export type Results = (scenario: string) => readonly Check[]

/**
 * Runs all scenarios of a revision. Loading the suite takes longer than most of them, so it is loaded once, also for
 * those that nobody asks for.
 */
export async function runSuite(script: string, url: string, revision: string): Promise<Results> {
  const folder = temporaryFolder('mcp-conformance-results')
  const flags = ['server', '--url', url, '--suite', 'all', '--spec-version', revision, '--output-dir', folder]
  const child = spawn(process.execPath, [script, ...flags], {
    cwd: tmpdir(),
    env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir() },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: runMsMax,
    killSignal: 'SIGKILL',
  })
  let printed = ''
  child.stdout.on('data', (bytes: Buffer) => (printed += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (printed += bytes.toString()))
  const ended = await new Promise<string>((resolve) =>
    child.on('close', (code, signal) => resolve(signal ?? `${code}`)),
  )
  const files = new Map<string, string>()
  for (const name of readdirSync(folder)) {
    // The name of the scenario, and when it was run.
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name)?.[1]
    if (scenario !== undefined) files.set(scenario, join(folder, name, 'checks.json'))
  }
  return (scenario) => {
    const file = files.get(scenario)
    if (file === undefined || !existsSync(file)) {
      throw new Error(`${scenario} left no results, and the suite ended with ${ended}: ${printed.slice(-2000)}`)
    }
    return JSON.parse(readFileSync(file, 'utf8')) as Check[]
  }
}

/** The suite cannot send a key, so this proxy adds it and changes nothing else. */
export async function openShim({ mcpUrl, key }: TestGateway): Promise<{ url: string; close(): void }> {
  const { hostname, port } = new URL(mcpUrl)
  const server: Server = createServer((request, response) => {
    const own = `localhost:${(server.address() as AddressInfo).port}`
    const { host, origin } = request.headers
    const headers = {
      ...request.headers,
      authorization: `Bearer ${key}`,
      // Replaces only its own name, because some scenarios are about a foreign one.
      host: host === own ? `${hostname}:${port}` : host,
      ...(origin !== undefined && { origin: origin.replace(`//${own}`, `//${hostname}:${port}`) }),
    }
    const passed = forward({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    request.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}/mcp`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
