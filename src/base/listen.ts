import type { Server } from 'bun'
import { systemClock, type Clock } from './clock.ts'
import { Deadlines } from './deadlines.ts'
import { watchLongAnswer, type Sending } from './long-answer.ts'
import { makeSocketTable, type SocketTable } from './socket-table.ts'
import { codeOf } from './system-errors.ts'

/** Asked for only where it is needed: finding it out takes 15 µs, a tenth of a request. */
export type Address = () => string

/** What the listener knows of one request beyond the request itself. */
export type Connection = {
  /** The peer's address as the socket has it; forwarding headers are read elsewhere, and only behind a trusted proxy. */
  address(): string
  /** How many headers the request has, by name. */
  headerCount(): number
  /** Call once the body is complete: from then on our own timers guard the exchange, and a quiet stream is not cut. */
  holdOpen(): void
  /** Call where we watch the reader of the answer too: it stays held open when it is handed over, until it is let go. */
  follow(): void
  /**
   * Call before the last of an answer is handed over: nobody of ours watches what its reader does with it from then on,
   * nor the connection when it is kept. `bytes`: how much there is to read.
   */
  letGo(bytes?: number): void
  /** The answer is ready, and goes to the runtime. */
  handOver(): void
  /** What was sent and not taken by the reader's side, as of `ageMsMax` ago at most; undefined where that cannot be known. */
  untaken(ageMsMax: number): Promise<number | undefined>
}

export type Listener = {
  readonly port: number
  /** Where this machine can call it. */
  readonly url: string
  /** Requests that are not answered to their end. */
  readonly underway: number
  /** Stops accepting; resolves when requests in flight are done, or at once with `force`. */
  stop(force?: boolean): Promise<void>
}

export type ListenOptions = {
  hostname: string
  port: number
  /** Where the operator chose the port, and chooses another when this one is taken. */
  setting: string
  bodyBytesMax: number
  /** After how long without a byte a connection is closed that is not held open. */
  idleSeconds?: number
  fetch(request: Request, connection: Connection): Response | Promise<Response>
}

// With 0, half-sent bodies and idle sockets would stay open for ever; Bun's own default of 10 s cuts quiet streams.
const idleSecondsDefault = 65

// What every system takes at once, so that no reader has to be waited for.
const takenAtOnceBytes = 16 * 1024

// Nobody can be called at these, and browsers refuse to: who listens everywhere is named by the loopback address.
const wildcards: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
])

/** At every address of this machine, and not at one. */
export function isEverywhere(hostname: string): boolean {
  return wildcards.has(hostname)
}

/** The one place that opens a port: Bun's server behind an interface another runtime could fill. */
export function listen(options: ListenOptions): Listener {
  const server = serve(options)
  const port = server.port ?? options.port
  const host = wildcards.get(options.hostname) ?? options.hostname
  return {
    port,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    get underway() {
      return server.pendingRequests
    },
    stop: (force = false) => server.stop(force),
  }
}

function serve(options: ListenOptions): Server<undefined> {
  try {
    return begin(options)
  } catch (thrown) {
    throw new Error(explain(options, thrown), { cause: thrown })
  }
}

// Of a port that may not be opened, an address of another machine, and too many open files.
const saysItself = new Set(['EACCES', 'EADDRNOTAVAIL', 'EMFILE'])

function explain({ hostname, port, setting }: ListenOptions, thrown: unknown): string {
  const code = codeOf(thrown)
  // An address that it can make nothing of is in use too, to this runtime, or whatever went wrong last; a free port tells.
  if (!saysItself.has(String(code)) && (port === 0 || !canListenAt(hostname))) {
    return `"${hostname}" is not an address that this machine can listen on (for ${setting})`
  }
  if (code === 'EADDRINUSE')
    return `port ${port} of ${hostname} is in use: give another as ${setting}, or 0 for a free one`
  const why = thrown instanceof Error ? thrown.message : String(thrown)
  return `port ${port} of ${hostname} (${setting}) cannot be opened: ${why}`
}

function canListenAt(hostname: string): boolean {
  try {
    void Bun.serve({ hostname, port: 0, fetch: () => new Response(null) }).stop(true)
    return true
  } catch {
    return false
  }
}

function begin(options: ListenOptions): Server<undefined> {
  const { idleSeconds = idleSecondsDefault } = options
  const shared = {
    sockets: makeSocketTable(systemClock),
    clock: systemClock,
    deadlines: new Deadlines(systemClock),
    idleSeconds,
  }
  return Bun.serve({
    hostname: options.hostname,
    port: options.port,
    maxRequestBodySize: options.bodyBytesMax,
    idleTimeout: idleSeconds,
    development: false,
    // Without this, Bun shares the port with whoever has it already, and requests go to either at random.
    reusePort: false,
    fetch: (request, server) => options.fetch(request, new OpenConnection(request, server, shared)),
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
    // Bun counts them anyway; its types do not say so.
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
    // Held open for ever, a kept connection would take whatever is half sent next, and wait for the rest.
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

  async untaken(ageMsMax: number): Promise<number | undefined> {
    const peer = this.#server.requestIP(this.#request)
    const localPort = this.#server.port
    if (peer === null || localPort === undefined) return undefined
    return this.#shared.sockets.untaken({ localPort, address: peer.address, port: peer.port }, ageMsMax)
  }
}
