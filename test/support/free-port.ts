import { createServer } from 'node:net'

// Below the range that systems use for outgoing connections, of which a busy test makes thousands, so that the port of
// a server that is briefly down or not yet started stays free.
const portMin = 15_000
const portMax = 30_000
const triesMax = 100

/** A free port, for a server whose port must be known before it listens, or that listens on it again. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries++) {
    const port = portMin + Math.floor(Math.random() * (portMax - portMin))
    if (await isFree(port)) return port
  }
  throw new Error('no free port')
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
