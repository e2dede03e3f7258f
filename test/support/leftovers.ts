import { AsyncLocalStorage } from 'node:async_hooks'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** What this process has open, according to the kernel. */
export type Leftovers = {
  /** Files of a folder. */
  readonly files: readonly string[]
  /** Ports that the process listens on. */
  readonly ports: readonly string[]
  /** Threads that the project's code has started. */
  readonly threads: number
}

export function openNow(folder: string): Leftovers {
  const links = descriptors()
  const listening = listeningSockets()
  return {
    files: links.filter((link) => link.startsWith(`${folder}/`)),
    ports: links.flatMap((link) => listening.get(link) ?? []).toSorted(),
    threads: threadNames().filter((name) => name === 'Worker').length,
  }
}

function descriptors(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      return [] // the descriptor that the folder was read with
    }
  })
}

const listenState = '0A'

/** The listening sockets of the machine: `socket:[inode]` to their address. */
function listeningSockets(): ReadonlyMap<string, string> {
  const lines = ['tcp', 'tcp6'].flatMap((table) => readFileSync(`/proc/self/net/${table}`, 'utf8').split('\n'))
  const fields = lines.map((line) => line.trim().split(/\s+/))
  return new Map(
    fields.filter(([, , , state]) => state === listenState).map((row) => [`socket:[${row[9]}]`, row[1] ?? '']),
  )
}

function threadNames(): string[] {
  return readdirSync('/proc/self/task').flatMap((task) => {
    try {
      return [readFileSync(`/proc/self/task/${task}/comm`, 'utf8').trim()]
    } catch {
      return [] // the thread has ended meanwhile
    }
  })
}

export type WatchedTimers = {
  /** Runs the work and follows its timers from now on, including those of everything it starts. */
  watch<T>(work: () => Promise<T>): Promise<T>
  /** How many timers are set and have neither fired nor been cleared. */
  readonly pending: () => number
  stop(): void
}

/** Tells the timers of one piece of work apart from all others. */
export function watchTimers(): WatchedTimers {
  const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis
  const pending = new Set<unknown>()
  const isWatched = new AsyncLocalStorage<true>()
  const follow = <T>(timer: T): T => {
    if (isWatched.getStore()) pending.add(timer)
    return timer
  }
  const forget = (clear: (timer: never) => void) => (timer: never) => {
    pending.delete(timer)
    clear(timer)
  }
  Object.assign(globalThis, {
    setTimeout(run: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) {
      const timer: unknown = setTimeout(() => {
        pending.delete(timer)
        run(...given)
      }, ms)
      return follow(timer)
    },
    setInterval: (run: () => void, ms?: number, ...given: unknown[]) => follow(setInterval(run, ms, ...given)),
    clearTimeout: forget(clearTimeout),
    clearInterval: forget(clearInterval),
  })
  return {
    watch: (work) => isWatched.run(true, work),
    pending: () => pending.size,
    stop: () => void Object.assign(globalThis, { setTimeout, setInterval, clearTimeout, clearInterval }),
  }
}
