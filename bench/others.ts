import { cpus } from 'node:os'
import type { Child } from './control.ts'

/** Starts measuring what share of all cores goes to processes that are not ours; the returned function gives it. */
export function watchOthers(ours: readonly Child[]): () => Promise<number> {
  const look = async () => {
    const own = process.cpuUsage()
    const theirs = await Promise.all(ours.map((child) => child.vitals()))
    const busyMs = cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)
    const oursMs = (own.user + own.system + theirs.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0)) / 1000
    return { at: performance.now(), othersMs: busyMs - oursMs }
  }
  const first = look()
  return async () => {
    const before = await first
    const after = await look()
    return (after.othersMs - before.othersMs) / (after.at - before.at) / navigator.hardwareConcurrency
  }
}
