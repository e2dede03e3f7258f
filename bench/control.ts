import { readFileSync, writeFileSync } from 'node:fs'

/** What a measured process reports about itself: the CPU time of all its threads, and its memory. */
export type Vitals = {
  readonly cpuMicros: number
  readonly rssBytes: number
  /** The peak since the last report; where the system does not record it, the current size. */
  readonly peakRssBytes: number
}

export type Ready = { readonly kind: 'ready'; readonly port: number }
export type Report = { readonly kind: 'vitals' } & Vitals

/** In the child: reports its port, answers every message with its vitals, and ends with its parent. */
export function reportTo(parent: NodeJS.Process, port: number): void {
  parent.on('message', () => {
    const { user, system } = process.cpuUsage()
    const rssBytes = process.memoryUsage.rss()
    const peakRssBytes = takePeak() ?? rssBytes
    parent.send?.({ kind: 'vitals', cpuMicros: user + system, rssBytes, peakRssBytes } satisfies Report)
  })
  parent.on('disconnect', () => process.exit(0))
  parent.send?.({ kind: 'ready', port } satisfies Ready)
}

/** Linux records the peak resident size of a process, and resets it when "5" is written (proc_pid_clear_refs(5)). */
function takePeak(): number | undefined {
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
    writeFileSync('/proc/self/clear_refs', '5')
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024
  } catch {
    return undefined
  }
}

/** In the parent: one measured process, on its own core where the machine lets us choose. */
export type Child = {
  readonly port: number
  readonly startMs: number
  vitals(): Promise<Vitals>
  stop(): Promise<void>
}

export type Core = 0 | 1

/** The command that keeps a program on one core; empty where there is no taskset or only one core. */
export function pinned(core: Core): string[] {
  return Bun.which('taskset') !== null && navigator.hardwareConcurrency > 1 ? ['taskset', '-c', String(core)] : []
}

const childEnvironment = {
  PATH: process.env['PATH'] ?? '',
  // The bare proxy and the minimal gateway use the runtime's fetch, which allows 256 requests at once otherwise.
  BUN_CONFIG_MAX_HTTP_REQUESTS: '65336',
  // As bin/turnpike sets these. The bare proxy is neither faster nor slower with them.
  MIMALLOC_PURGE_DELAY: '1000',
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '10000',
}

/** Resolves when the child has answered its first /healthz, with the time that took since the spawn. */
export async function startChild(core: Core, script: string, args: readonly string[]): Promise<Child> {
  const ready = Promise.withResolvers<number>()
  const asked: ((vitals: Vitals) => void)[] = []
  const spawnedAt = performance.now()
  const child = Bun.spawn([...pinned(core), process.execPath, `${import.meta.dir}/${script}`, ...args], {
    env: childEnvironment,
    stdio: ['ignore', 'inherit', 'inherit'],
    ipc(message: Ready | Report) {
      if (message.kind === 'ready') ready.resolve(message.port)
      else asked.shift()?.(message)
    },
  })
  const died = child.exited.then((code) => {
    throw new Error(`${script} ended with ${code} before it was ready`)
  })
  const port = await Promise.race([ready.promise, died])
  died.catch(() => {})
  const health = await fetch(`http://127.0.0.1:${port}/healthz`)
  await health.arrayBuffer()
  if (health.status !== 200) throw new Error(`${script} is not healthy`)
  const startMs = performance.now() - spawnedAt
  return {
    port,
    startMs,
    vitals: () =>
      new Promise((resolve) => {
        asked.push(resolve)
        child.send('vitals')
      }),
    async stop() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}
