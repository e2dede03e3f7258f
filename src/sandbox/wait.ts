/** One turn of the event loop, in which sockets are written and hang-ups are noticed. */
export function tick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
