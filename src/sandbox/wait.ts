/** Waits so long, or until the caller is gone. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    function end(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
  })
}

/** One turn of the event loop: sockets are written and hang-ups noticed. */
export function tick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
