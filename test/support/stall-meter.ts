import { readFileSync } from 'node:fs'

// Preloaded into a gateway that runs in a process of its own: says for how long its loop was kept busy in one go, counted
// in the processor's time of that one thread. On a machine that others share the clock on the wall would blame them too.

const socket = process.env['STALL_METER']
const ticksEveryMs = 1

/** What the main thread, which has the number of the process, has had of a processor so far. */
function usedMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6
}

// Threads that the gateway starts preload it too.
if (socket !== undefined && Bun.isMainThread) {
  let longestMs = 0
  let last = usedMs()
  const tick = () => {
    const now = usedMs()
    longestMs = Math.max(longestMs, now - last)
    last = now
  }
  setInterval(tick, ticksEveryMs).unref()
  // Whoever asks begins a new measurement.
  const answer = () => {
    tick()
    const told = { longestMs, usedMs: last }
    longestMs = 0
    return Response.json(told)
  }
  Bun.serve({ unix: socket, fetch: answer }).unref()
}
