import { cpus } from 'node:os'
import type { Child } from './control.ts'

/** Starts measuring what share of all cores goes to processes that are not ours; the returned function gives it. */
export function watchOthers(ours: readonly Child[]): () => Promise<number> {
  const cores = cpus().length
  const look = async () => {
    const own = process.cpuUsage()
    const theirs = await Promise.all(ours.map((child) => child.vitals()))
    // Not what was busy: the system samples that, and misses most of what runs for less than a tick. What a host takes
    // from a virtual machine, and what a core waits for a disk, count as others', too.
    const idleMs = cpus().reduce((sum, { times }) => sum + times.idle, 0)
    const oursMs = (own.user + own.system + theirs.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0)) / 1000
    return { at: performance.now(), accountedMs: idleMs + oursMs }
  }
  const first = look()
  return async () => {
    const before = await first
    const after = await look()
    return 1 - (after.accountedMs - before.accountedMs) / ((after.at - before.at) * cores)
  }
}
