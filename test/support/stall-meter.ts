import { readFileSync } from 'node:fs'

// Preloaded into a gateway in a separate process: reports the longest time for which its event loop was busy without a
// break, in processor time of that one thread. On a shared machine wall-clock time would include other processes.

const socket = process.env['STALL_METER']
const ticksEveryMs = 1

/** The processor time that the main thread, whose id is the process id, has used so far. */
function usedMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6
}

// Threads that the gateway starts preload this file too.
if (socket !== undefined && Bun.isMainThread) {
  let longestMs = 0
  let last = usedMs()
  const tick = () => {
    const now = usedMs()
    longestMs = Math.max(longestMs, now - last)
    last = now
  }
  setInterval(tick, ticksEveryMs).unref()
  // Every request begins a new measurement. The system counts a thread's time when it stops running, so that work just
  // done may be missing until the thread has waited once.
  const answer = async () => {
    await Bun.sleep(1)
    tick()
    const told = { longestMs, usedMs: last }
    longestMs = 0
    return Response.json(told)
  }
  Bun.serve({ unix: socket, fetch: answer }).unref()
}
