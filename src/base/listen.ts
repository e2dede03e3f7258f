import { networkInterfaces } from 'node:os'
import { messageOf } from './errors.ts'
import { codeOf } from './system-errors.ts'

export type Listener = {
  readonly port: number
  /** The address at which this machine can call it. */
  readonly url: string
  /** Requests whose response is not finished. */
  readonly underway: number
  /** Accepts nothing more. `gently`: resolves when the requests in flight are done. `at-once`: cuts them off. */
  stop(how: 'gently' | 'at-once'): Promise<void>
}

/** Where to listen. `setting`: with which the operator chose the port, for the message that it is taken. */
export type Place = { readonly hostname: string; readonly port: number; readonly setting: string }

// These cannot be called, and browsers refuse to: a listener on all addresses is shown by the loopback address.
const wildcards: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
  // How other programs spell all addresses, of both kinds where the machine has both; Bun understands it too.
  ['*', '127.0.0.1'],
])

/** Whether a host name means every address of this machine. */
export function isEverywhere(hostname: string): boolean {
  return wildcards.has(hostname)
}

/** The address at which this machine can call a listener. Where IPv6 is switched off, `::` is called by IPv4 alone. */
export function callableHost(hostname: string, ownAddresses = addressesOfThisMachine): string {
  const loopback = wildcards.get(hostname) ?? hostname
  return hostname === '::' && !ownAddresses().includes(loopback) ? '127.0.0.1' : loopback
}

export function addressesOfThisMachine(): string[] {
  return Object.values(networkInterfaces()).flatMap((found = []) => found.map(({ address }) => address))
}

export function urlOf(hostname: string, port: number): string {
  const host = callableHost(hostname)
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Throws what opening a port would throw where this machine cannot listen, whoever has the port now. */
export function checkHost(place: Place): void {
  try {
    tryOut(place.hostname)
  } catch (thrown) {
    throw new Error(explainListening(place, thrown), { cause: thrown })
  }
}

// These say what is wrong: a forbidden port, an address of another machine, too many open files.
const saysItself = new Set(['EACCES', 'EADDRNOTAVAIL', 'EMFILE'])

/** What is wrong with a place, in the words of the settings. */
export function explainListening({ hostname, port, setting }: Place, thrown: unknown): string {
  const code = codeOf(thrown)
  // Bun reports an unusable address as EADDRINUSE, or as the error that came last; opening a free port there tells.
  if (!saysItself.has(String(code)) && (port === 0 || !canListenAt(hostname))) {
    return `"${hostname}" is not an address that this machine can listen on (for ${setting})`
  }
  if (code === 'EADDRINUSE')
    return `port ${port} of ${hostname} is in use: give another as ${setting}, or 0 for a free one`
  return `port ${port} of ${hostname} (${setting}) cannot be opened: ${String(code)} (${messageOf(thrown)})`
}

function canListenAt(hostname: string): boolean {
  try {
    tryOut(hostname)
    return true
  } catch {
    return false
  }
}

/** Opens a free port and closes it. */
function tryOut(hostname: string): void {
  Bun.listen({ hostname, port: 0, socket: { data() {} } }).stop(true)
}
