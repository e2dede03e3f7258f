import { createServer } from 'node:net'

// Below the range that systems use for outgoing connections, of which a busy test makes thousands, so that the port of
// a server that is briefly down or not yet started stays free.
const portMin = 15_000
const portsPerWorker = 1_500
const workersMax = 10

// A port is free until its server listens, so two workers that look at the same moment must not look at the same ports.
const worker = Number(process.env['BUN_TEST_WORKER_ID'] ?? 0) % workersMax
// By chance, for two runs of the tests on one machine.
const start = Math.floor(Math.random() * portsPerWorker)
let given = 0

/**
 * A free port that no other test of this run is given, for a server whose port must be known before it listens, or that
 * listens on it again.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < portsPerWorker; tries++) {
    const port = portMin + worker * portsPerWorker + ((start + given++) % portsPerWorker)
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
