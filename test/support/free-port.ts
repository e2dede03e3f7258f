import { createServer } from 'node:net'

// Below those that systems give to connections, of which a busy test makes thousands: whoever is away for a moment, or not yet
// there, finds its port free.
const portMin = 15_000
const portMax = 30_000
const triesMax = 100

/** A port that nobody has, for whoever has to know it before it listens, or comes back to it. */
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
