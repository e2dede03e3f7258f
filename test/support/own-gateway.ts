import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { simulatedChannels } from '../../src/market.ts'
import { makeCli, type Served } from './cli.ts'

/** A gateway in a process of its own, whose loop and memory are looked at from outside. */
export type OwnGateway = Served & {
  readonly folder: string
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
  /**
   * For how long its loop was kept busy in one go at most while something was done, in milliseconds of a processor. It is
   * the least of three tries, since code is still being compiled at times; one that is good enough is the last.
   */
  stallOf<T>(work: () => Promise<T>, goodMs?: number): Promise<Stalled<T>>
  /** The memory that it has now, in bytes. */
  residentBytes(): number
  /** The most memory that it had while something was done, in bytes. */
  peakBytesOf(work: () => Promise<unknown>): Promise<number>
  close(): Promise<void>
}

/** `workMs` is all of the work that was done meanwhile, in as many turns as it took. */
export type Stalled<T> = { readonly result: T; readonly stallMs: number; readonly workMs: number }

/** Linux tells how much of a processor a thread had, and how much memory a process had at most. */
export const isTold = existsSync('/proc/self/clear_refs') && existsSync('/proc/self/schedstat')
if (!isTold) process.stderr.write('skipped: this system does not tell how busy or how large another process is\n')

const triesMax = 3
const meter = join(import.meta.dir, 'stall-meter.ts')

export async function startOwnGateway(yaml: string): Promise<OwnGateway> {
  const cli = makeCli()
  cli.write('turnpike.yaml', yaml)
  const socket = join(cli.folder, 'meter.sock')
  const served = await cli.serve(['--config', 'turnpike.yaml'], {
    BUN_OPTIONS: `--preload ${meter}`,
    STALL_METER: socket,
  })
  const measured = async () => {
    const response = await fetch('http://localhost/', { unix: socket })
    return (await response.json()) as { longestMs: number; usedMs: number }
  }
  const memory = (name: 'VmRSS' | 'VmHWM') => {
    const status = readFileSync(`/proc/${served.pid}/status`, 'utf8')
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
  }
  return {
    ...served,
    folder: cli.folder,
    post: (path, body, headers = {}) =>
      fetch(served.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${served.key}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' || body instanceof Uint8Array ? (body as BodyInit) : JSON.stringify(body),
      }),
    async stallOf(work, goodMs = 0) {
      const once = async () => {
        const before = await measured()
        const result = await work()
        const after = await measured()
        return { result, stallMs: after.longestMs, workMs: after.usedMs - before.usedMs }
      }
      let best = await once()
      for (let tries = 1; tries < triesMax && best.stallMs > goodMs; tries++) {
        const next = await once()
        if (next.stallMs < best.stallMs) best = next
      }
      return best
    },
    residentBytes: () => memory('VmRSS'),
    async peakBytesOf(work) {
      writeFileSync(`/proc/${served.pid}/clear_refs`, '5')
      await work()
      return memory('VmHWM')
    },
    close: () => cli.close(),
  }
}

/** Settings with a channel to every vendor, each of them simulated somewhere else. */
export function channelsAt(baseUrl: (vendor: string) => string): string {
  const channels = simulatedChannels([], baseUrl).map(
    ({ id, vendor, baseUrl: url, credentials }) =>
      `  - { id: ${id}, vendor: ${vendor.id}, baseUrl: "${url}", keys: ["${credentials[0]}"] }`,
  )
  return ['sandbox: false', 'channels:', ...channels, ''].join('\n')
}
