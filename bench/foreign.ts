import { readdirSync, readFileSync } from 'node:fs'
import { freePort } from '../test/support/free-port.ts'
import { pinned, type Core, type Vitals } from './control.ts'

/** A server of somebody else's, measured from outside through Linux's /proc. */
export type Foreign = {
  readonly port: number
  /** From the spawn to the first answer of its health check. */
  readonly startMs: number
  vitals(): Promise<Pick<Vitals, 'cpuMicros' | 'rssBytes'>>
  stop(): Promise<void>
}

export type ForeignCommand = {
  readonly command: (port: number) => readonly string[]
  readonly healthPath: string
}

const startMsMax = 120_000
const lookEveryMs = 20
// A server that takes the connection and is not ready to answer must not hold up the look at its end.
const healthMsMax = 5_000

export async function startForeign(core: Core, foreign: ForeignCommand): Promise<Foreign> {
  const port = await freePort()
  const spawnedAt = performance.now()
  const child = Bun.spawn([...pinned(core), ...foreign.command(port)], {
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const stop = async () => {
    for (const { own } of familyOf(child.pid)) kill(own)
    await child.exited
  }
  while (!(await isHealthy(`http://127.0.0.1:${port}${foreign.healthPath}`))) {
    if (child.exitCode !== null) throw new Error(`${foreign.command(port).join(' ')} ended with ${child.exitCode}`)
    if (performance.now() - spawnedAt > startMsMax) {
      await stop()
      throw new Error(`${foreign.command(port).join(' ')} is not healthy`)
    }
    await Bun.sleep(lookEveryMs)
  }
  return { port, startMs: performance.now() - spawnedAt, vitals: async () => vitalsOf(child.pid), stop }
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(healthMsMax) })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}

const microsPerTick = 10_000 // proc(5): a hundred ticks a second on every machine that matters here
const pageBytes = 4096

function vitalsOf(pid: number): Pick<Vitals, 'cpuMicros' | 'rssBytes'> {
  const ours = familyOf(pid)
  return {
    cpuMicros: ours.reduce((sum, { ticks }) => sum + ticks, 0) * microsPerTick,
    rssBytes: ours.reduce((sum, { pages }) => sum + pages, 0) * pageBytes,
  }
}

/** A process and all that it started. */
function familyOf(pid: number) {
  const processes = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (statOf(name) ?? []) : []))
  const family = new Set([pid])
  // A child may come before its parent in the list where numbers have wrapped around.
  for (let size = 0; size < family.size;) {
    size = family.size
    for (const { own, parent } of processes) if (family.has(parent)) family.add(own)
  }
  return processes.filter(({ own }) => family.has(own))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it ended in between
  }
}

function statOf(pid: string) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name, in brackets, may itself have spaces and brackets.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [, parent = 0, , , , , , , , , , user = 0, system = 0] = fields
    return { own: Number(pid), parent, ticks: user + system, pages: fields[21] ?? 0 }
  } catch {
    return undefined // it ended in between
  }
}
