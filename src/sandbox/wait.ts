/** One turn of the event loop: sockets are written and hang-ups noticed. */
export function tick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
