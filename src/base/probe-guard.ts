import { createServer, type AddressInfo, type Server } from 'node:net'
import { makeGuardedFetch } from './guarded-fetch.ts'
import { GuardRefusal, type RefusalReason } from './untrusted-url.ts'

// The loopback by name, and in every spelling that a runtime might read as an IP literal. Literals are never looked up,
// so they pass through a check of their own.
const loopbacks = ['localhost', '127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', '[::1]']
const name = 'guard-probe.invalid'
// A refusal for any other reason means that the guard dialled: no server answered, but one could have.
const beforeDialling: ReadonlySet<RefusalReason> = new Set(['malformed', 'not-public', 'unresolved'])

/**
 * Proves, on the runtime this process runs on, that a client's URL cannot reach this machine: a listener on the
 * loopback must see no connection, however it is addressed. Also proves that the listener would see one: the same
 * fetch, allowed to connect, must arrive at the checked address, under a name that no resolver knows. Throws one line
 * if either fails.
 */
export async function probeGuard(make: typeof makeGuardedFetch = makeGuardedFetch, lookupMs = 30_000): Promise<void> {
  let visits = 0
  const server = createServer((socket) => {
    visits++
    socket.on('error', () => {})
    socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
  })
  const port = await listenOnLoopback(server)
  const open = { schemes: 'https-and-http', ports: 'any' } as const
  // Long, because a start may keep the process busy for seconds, and a working guard refuses before it dials anyway.
  const limits = { bytesMax: 1024, connectMs: lookupMs, totalMs: 2 * lookupMs }
  const rebound = { resolve: () => Promise.resolve(['127.0.0.1']) }
  try {
    const guarded = [...loopbacks.map((host) => [host, make(open)] as const), [name, make(open, rebound)] as const]
    for (const [host, guard] of guarded) {
      const outcome = await guard.get(`http://${host}:${port}/`, limits).catch((thrown: unknown) => thrown)
      if (outcome instanceof GuardRefusal && outcome.reason === 'lookup-slow') throw new Error(noAnswer(host, lookupMs))
      const isRefused = outcome instanceof GuardRefusal && beforeDialling.has(outcome.reason)
      if (!isRefused || visits > 0) throw new Error(failure(`${host} is not refused`))
    }
    const allowed = make({ ...open, addresses: 'loopback' }, rebound)
    const { status } = await allowed.get(`http://${name}:${port}/`, limits).catch(() => ({ status: 0 }))
    if (status !== 204 || visits !== 1) throw new Error(failure('it does not dial the address that it checked'))
  } finally {
    server.close()
  }
}

function failure(what: string): string {
  return `the guard against URLs into this network does not work here (${what}): start Turnpike with npm start`
}

/** A separate message, because here the guard is not at fault and another runtime would not help. */
function noAnswer(host: string, withinMs: number): string {
  return (
    `the guard against URLs into this network cannot be verified: "${host}" could not be resolved within ` +
    `${withinMs / 1000} s. Make sure that this machine can resolve names, and its own without a name server (/etc/hosts)`
  )
}

function listenOnLoopback(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}
