import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { simulatedChannels, simulatedModels } from '../../src/simulated.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { makeCli, type Served } from './cli.ts'
import { catalogue } from './video-asks.ts'

/** A gateway in a separate process, whose event loop and memory are observed from outside. */
export type OwnGateway = Served & {
  readonly folder: string
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
  /**
   * The longest time for which some work kept the event loop busy without a break, in milliseconds of processor time.
   * It is the minimum of several tries, which stop at the first good one: code that stalls the loop does so every time,
   * while compilation and garbage collection do not.
   */
  stallOf<T>(work: () => Promise<T>, goodMs: number): Promise<Stalled<T>>
  /** The processor time of all the work done meanwhile, over any number of turns, to be compared with other work. */
  workOf<T>(work: () => Promise<T>, goodMs: number): Promise<Stalled<T>>
  /** The baseline that other work is compared with. It is tried several times, however good the first try is. */
  ordinaryWorkOf<T>(work: () => Promise<T>): Promise<Stalled<T>>
  /** Its current memory, in bytes. */
  residentBytes(): number
  /** Its peak memory while some work was done, in bytes. */
  peakBytesOf(work: () => Promise<unknown>): Promise<number>
  close(): Promise<void>
}

export type Stalled<T> = { readonly result: T; readonly stallMs: number; readonly workMs: number }

/** Linux reports how much processor time a thread used, and the peak memory of a process. */
export const isTold = existsSync('/proc/self/clear_refs') && existsSync('/proc/self/schedstat')
if (!isTold) process.stderr.write('skipped: this system does not tell how busy or how large another process is\n')

const triesMax = 8
const ordinaryTries = 3
const meter = join(import.meta.dir, 'stall-meter.ts')

export async function startOwnGateway(yaml: string): Promise<OwnGateway> {
  const cli = makeCli()
  cli.write('turnpike.yaml', yaml)
  const socket = join(cli.folder, 'meter.sock')
  const served = await cli.serve([], {
    BUN_OPTIONS: `--preload ${meter}`,
    STALL_METER: socket,
  })
  const measured = async () => {
    const response = await fetch('http://localhost/', { unix: socket })
    return (await response.json()) as { longestMs: number; usedMs: number }
  }
  const once = async <T>(work: () => Promise<T>): Promise<Stalled<T>> => {
    const before = await measured()
    const result = await work()
    const after = await measured()
    return { result, stallMs: after.longestMs, workMs: after.usedMs - before.usedMs }
  }
  const leastOf = async <T>(what: 'stallMs' | 'workMs', work: () => Promise<T>, goodMs: number, most = triesMax) => {
    let least = await once(work)
    for (let tries = 1; tries < most && least[what] >= goodMs; tries++) {
      const next = await once(work)
      if (next[what] < least[what]) least = next
    }
    return least
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
    stallOf: (work, goodMs) => leastOf('stallMs', work, goodMs),
    workOf: (work, goodMs) => leastOf('workMs', work, goodMs),
    ordinaryWorkOf: (work) => leastOf('workMs', work, 0, ordinaryTries),
    residentBytes: () => memory('VmRSS'),
    async peakBytesOf(work) {
      writeFileSync(`/proc/${served.pid}/clear_refs`, '5')
      await work()
      return memory('VmHWM')
    },
    close: () => cli.close(),
  }
}

/** The same with a channel to every vendor, all simulated outside of its process, so that they are not measured. */
export async function startOwnGatewayOnSimulators(): Promise<OwnGateway> {
  const sandbox = startSandbox({ port: 0, models: () => simulatedModels(catalogue, []) })
  const gateway = await startOwnGateway(channelsAt((vendor) => sandbox.baseUrl(vendor)))
  return {
    ...gateway,
    async close() {
      await gateway.close()
      await sandbox.stop()
    },
  }
}

/** Settings with a channel to every vendor, each simulated elsewhere. */
export function channelsAt(baseUrl: (vendor: string) => string): string {
  const channels = simulatedChannels([], baseUrl).map(
    ({ id, vendor, baseUrl: url, credentials }) =>
      `  - { id: ${id}, vendor: ${vendor.id}, baseUrl: "${url}", keys: ["${credentials[0]}"] }`,
  )
  return ['sandbox: false', 'channels:', ...channels, ''].join('\n')
}
