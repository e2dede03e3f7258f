import { networkInterfaces } from 'node:os'
import type { Server } from 'bun'
import { systemClock, type Clock } from './clock.ts'
import { Deadlines } from './deadlines.ts'
import { messageOf } from './errors.ts'
import { Gathering } from './gathering.ts'
import { watchLongAnswer, type Sending } from './long-answer.ts'
import { makeSocketTable, type SocketTable } from './socket-table.ts'
import { codeOf } from './system-errors.ts'

/** A function, so that it is called only where needed: finding the address out takes 15 µs, a tenth of a request. */
export type Address = () => string

/** What the listener knows of one request beyond the request itself. */
export type Connection = {
  /** The peer's address as the socket has it; forwarding headers are read elsewhere, only behind a trusted proxy. */
  address(): string
  /** How many distinct header names the request has. */
  headerCount(): number
  /** Call once the body is complete: from then on our own timers guard the exchange, and a quiet stream is not cut. */
  holdOpen(): void
  /** Call where we also watch the client read the response: the connection is then held open beyond `handOver`. */
  follow(): void
  /**
   * Call before the last part of a response is handed over: from then on the runtime's timeout guards the rest of it,
   * and the connection when it is kept alive. `bytes`: how much the client has to read.
   */
  letGo(bytes?: number): void
  /** Call when the response is ready and goes to the runtime. */
  handOver(): void
  /** How many sent bytes the client has not acknowledged, as of `ageMsMax` ago at most; undefined where unknown. */
  unreadBytes(ageMsMax: number): Promise<number | undefined>
}

export type Listener = {
  readonly port: number
  /** The address at which this machine can call it. */
  readonly url: string
  /** Requests whose response is not finished. */
  readonly underway: number
  /** Accepts nothing more. `gently`: resolves when the requests in flight are done. `at-once`: cuts them off. */
  stop(how: 'gently' | 'at-once'): Promise<void>
}

export type ListenOptions = {
  hostname: string
  port: number
  /** The setting with which the operator chose the port, for the message that it is taken. */
  setting: string
  bodyBytesMax: number
  /** How long a connection that is not held open may stay without a byte before it is closed. */
  idleSeconds?: number
  fetch(request: Request, connection: Connection): Response | Promise<Response>
}

// With 0, half-sent bodies and idle sockets would stay open for ever; Bun's own default of 10 s cuts quiet streams.
const idleSecondsDefault = 65

// Every system's socket buffer takes this much at once, so that there is no need to wait for the client to read.
const takenAtOnceBytes = 16 * 1024

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

/** The one place that opens a port: Bun's server behind an interface another runtime could fill. */
export function listen(options: ListenOptions): Listener {
  const server = serve(options)
  const port = server.port ?? options.port
  const host = callableHost(options.hostname)
  return {
    port,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    get underway() {
      return server.pendingRequests
    },
    stop: (how) => server.stop(how === 'at-once'),
  }
}

type Place = Pick<ListenOptions, 'hostname' | 'port' | 'setting'>

/** Throws what `listen` would throw for an address at which this machine cannot listen, whoever has the port now. */
export function checkHost(place: Place): void {
  try {
    tryOut(place.hostname)
  } catch (thrown) {
    throw new Error(explain(place, thrown), { cause: thrown })
  }
}

function serve(options: ListenOptions): Server<undefined> {
  try {
    return begin(options)
  } catch (thrown) {
    throw new Error(explain(options, thrown), { cause: thrown })
  }
}

// The messages of these say what is wrong: a forbidden port, an address of another machine, too many open files.
const saysItself = new Set(['EACCES', 'EADDRNOTAVAIL', 'EMFILE'])

function explain({ hostname, port, setting }: Place, thrown: unknown): string {
  const code = codeOf(thrown)
  // Bun reports an unusable address as EADDRINUSE, or as the error that came last; opening a free port there tells.
  if (!saysItself.has(String(code)) && (port === 0 || !canListenAt(hostname))) {
    return `"${hostname}" is not an address that this machine can listen on (for ${setting})`
  }
  if (code === 'EADDRINUSE')
    return `port ${port} of ${hostname} is in use: give another as ${setting}, or 0 for a free one`
  return `port ${port} of ${hostname} (${setting}) cannot be opened: ${messageOf(thrown)}`
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
  void Bun.serve({ hostname, port: 0, fetch: () => new Response(null) }).stop(true)
}

function begin(options: ListenOptions): Server<undefined> {
  const { idleSeconds = idleSecondsDefault } = options
  const shared = {
    sockets: makeSocketTable(systemClock),
    clock: systemClock,
    deadlines: new Deadlines(systemClock),
    idleSeconds,
  }
  const arrivals = new Gathering()
  return Bun.serve({
    hostname: options.hostname,
    port: options.port,
    maxRequestBodySize: options.bodyBytesMax,
    idleTimeout: idleSeconds,
    development: false,
    // Without this, Bun shares the port with a process that has it already, and requests go to either at random.
    reusePort: false,
    fetch(request, server) {
      const answer = () => options.fetch(request, new OpenConnection(request, server, shared))
      // What is only read is answered at once, or the runtime would cut off a client that pipelines.
      return request.method === 'POST' ? arrivals.gathered().then(answer) : answer()
    },
    error: () => new Response(null, { status: 500 }),
  })
}

type Shared = {
  readonly sockets: SocketTable
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly idleSeconds: number
}

class OpenConnection implements Connection, Sending {
  readonly #request: Request
  readonly #server: Server<undefined>
  readonly #shared: Shared
  #guard: 'runtime' | 'ours' | 'followed' = 'runtime'

  constructor(request: Request, server: Server<undefined>, shared: Shared) {
    this.#request = request
    this.#server = server
    this.#shared = shared
  }

  address(): string {
    return this.#server.requestIP(this.#request)?.address ?? ''
  }

  headerCount(): number {
    // Bun's Headers have a `count`; its types do not say so.
    return (this.#request.headers as Headers & { readonly count: number }).count
  }

  holdOpen(): void {
    this.#guard = 'ours'
    this.allow(0)
  }

  follow(): void {
    this.#guard = 'followed'
  }

  handOver(): void {
    // Without this, a kept connection would wait forever for the rest of a next request that is only half sent.
    if (this.#guard === 'ours') this.letGo()
  }

  letGo(bytes = 0): void {
    this.#guard = 'runtime'
    if (bytes > takenAtOnceBytes) watchLongAnswer(this, this.#shared)
    else this.allow(this.#shared.idleSeconds)
  }

  isUnderway(): boolean {
    return this.#guard === 'runtime' && this.#server.requestIP(this.#request) !== null
  }

  allow(seconds: number): void {
    this.#server.timeout(this.#request, seconds)
  }

  async unreadBytes(ageMsMax: number): Promise<number | undefined> {
    const peer = this.#server.requestIP(this.#request)
    const localPort = this.#server.port
    if (peer === null || localPort === undefined) return undefined
    return this.#shared.sockets.unreadBytes({ localPort, address: peer.address, port: peer.port }, ageMsMax)
  }
}
